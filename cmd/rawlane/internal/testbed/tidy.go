package testbed

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/procgroup"
)

// tidy removes a folder when the agents that use it have ended: they may have to end their programs
// first. One that was killed has left its file, and is not waited for. One that comes late puts its
// file into a folder that is being removed, which needs another try.
const tidy = `n=0; while test $n -lt 80; do n=$((n+1)); ` +
	`for f in "$d"/agent.*; do kill -0 "${f##*.}" 2> /dev/null && { sleep 0.1; continue 2; }; done; ` +
	`rm -rf "$d" && exit; done; exec rm -rf "$d"`

// tidyTimeout is how long tidy is waited for: it takes 8 seconds and what its commands do, beside
// the connection.
const tidyTimeout = 8*time.Second + 2*launch.AskTimeout

// tidyUp removes what was copied, as far as the hosts can be reached, and says what stays: that is
// an error, if it has the key. An interrupt at the terminal does not reach the shells that remove
// it, which also go on where a second one ends this process.
func (r *remote) tidyUp() error {
	onEach(r.folders, func(host string) {
		ctx, cancel := context.WithTimeout(context.Background(), tidyTimeout)
		defer cancel()
		c := r.on(ctx, host, "d="+cli.Quote(r.folders[host])+"; "+tidy)
		procgroup.Own(c)
		err := c.Run()
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil {
			delete(r.left, host)
			return
		}
		r.sayLeft(host, "could not be removed: "+err.Error())
	})
	if len(r.left) > 0 && r.verb.keyFile != "" {
		return &cli.StatusError{Status: cli.ExitFailed} // all is said
	}
	return nil
}

// sayLeft tells the user of a folder that stays. The caller holds mu.
func (r *remote) sayLeft(host, why string) {
	if r.verb.keyFile != "" {
		why += "; it has the key"
	}
	r.say("rawlane run: host %s: %s %s\n", host, r.left[host], why)
}

// hearSignals lets the first signal be the context's, and has a second one end the process, which
// says before what may stay on hosts.
func (r *remote) hearSignals() (stop func()) {
	came, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() { // until the hosts are tidied up
		select {
		case <-over:
			return
		case <-came:
		}
		time.Sleep(cli.SameSignal)
		select {
		case <-came: // the same, once more
		default:
		}
		select {
		case <-over:
		case s := <-came:
			r.mu.Lock() // for good
			for host := range r.left {
				r.sayLeft(host, "may stay: interrupted twice")
			}
			os.Exit(cli.ExitSignal + int(s.(syscall.Signal))) // all of package os's are
		}
	}()
	return func() { signal.Stop(came); close(over) }
}
