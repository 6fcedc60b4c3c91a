// Command echo measures the round trip to a node that sends everything back. The port that echoes
// has a Receive function, which runs whether or not the node's program waits for anything.
//
//	go run ./examples/echo                                     both nodes in this process
//	go build ./examples/echo && rawlane run -n 2 ./echo        a process for each, on kernel links
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const (
	echoPort mcd.PortID = 7
	askPort  mcd.PortID = 8
	goodbye             = "goodbye"
	rounds              = 1000
	stay                = 500 * time.Millisecond // after a goodbye: its echo may be lost
)

func main() {
	start.Main(start.Config{Nodes: 2, Exact: true, Limit: 30 * time.Second}, node)
}

// node is each node's part.
func node(ctx context.Context, e *start.Node) error {
	if e.Node() == 1 {
		return serve(ctx, e)
	}
	return ask(ctx, e)
}

// serve echoes until a message says goodbye.
func serve(ctx context.Context, e *start.Node) error {
	var over mcd.Completion
	var echo *mcd.Port
	opened := make(chan struct{})
	ended := false // handlers run one at a time
	echo, err := e.OpenPort(echoPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-opened
		for _, m := range batch {
			_ = echo.TrySend(m.NIC, mcd.To(m.From), m.Payload) // ask repeats one that is lost
			if string(m.Payload) == goodbye && !ended {
				ended = true
				over.Complete(nil)
			}
		}
	}})
	close(opened)
	if err != nil {
		return err
	}
	if err := e.Await(ctx, &over); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, stay)
	defer cancel()
	<-patience.Done() // meanwhile the handler runs
	return ctx.Err()
}

// ask sends messages to the echo, one after the other, and prints their round-trip times.
func ask(ctx context.Context, e *start.Node) error {
	p, err := e.OpenPort(askPort, mcd.PortOptions{})
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range rounds {
		d, err := round(ctx, p, fmt.Sprintf("message %d", i))
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	fmt.Printf("%d round trips, median %v, 99th percentile %v\n", rounds, took[rounds/2], took[rounds*99/100])
	_, err = round(ctx, p, goodbye)
	return err
}

// round sends text until it comes back, and returns the round-trip time of the last try.
func round(ctx context.Context, p *mcd.Port, text string) (time.Duration, error) {
	buf := make([]byte, p.Endpoint().MaxPayload())
	for {
		start := time.Now()
		if err := p.Send(ctx, mcd.Addr{Node: 1, Port: echoPort}, []byte(text)); err != nil {
			return 0, err
		}
		patience, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		n, _, err := p.Recv(patience, buf)
		cancel()
		if err == nil && string(buf[:n]) == text {
			return time.Since(start), nil
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return 0, errors.Join(ctx.Err(), err)
		}
	}
}
