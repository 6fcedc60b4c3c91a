package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// A master without workers does not wait for results that nobody computes.
func TestNode_Alone(t *testing.T) {
	t.Setenv(start.EnvNode, "")
	synctest.Test(t, func(t *testing.T) {
		cfg := start.Config{Nodes: 1, Limit: time.Hour, Endpoint: mcd.Config{Spin: -1}}
		begin := time.Now()
		err := start.Run(t.Context(), cfg, node)
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "want two nodes or more") || took > time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// The master says how much is missing, and which worker has gone with a task.
func TestNode_AWorkerDies(t *testing.T) {
	t.Setenv(start.EnvNode, "")
	synctest.Test(t, func(t *testing.T) {
		cfg := start.Config{Nodes: 3, Limit: 20 * time.Second, Endpoint: mcd.Config{Spin: -1}}
		err := start.Run(t.Context(), cfg, func(ctx context.Context, e *start.Node) error {
			if e.Node() != 2 {
				return node(ctx, e)
			}
			if err := drawAndDie(ctx, e); err != nil {
				return err
			}
			<-ctx.Done() // the others go on
			return nil
		})
		// The other worker may have left just before, as its time was over, too.
		want := regexp.MustCompile(`node 0: 1 of 2000 results have not come: .*node 2 (\(silent\)|has not answered for 2s)`)
		if err == nil || !want.MatchString(err.Error()) {
			t.Errorf("%v, want %q", err, want)
		}
	})
}

// drawAndDie is a worker that says nothing any more once it has a task.
func drawAndDie(ctx context.Context, e *start.Node) error {
	d, err := memfifo.Open(e.Endpoint, memfifo.Config{})
	if err != nil {
		return err
	}
	x, err := cluster.OpenExchanger(e.Endpoint, cluster.ExchangerConfig{})
	if err != nil {
		return err
	}
	keys, err := x.Exchange(ctx, nil)
	if err != nil {
		return err
	}
	counter, _, _ := strings.Cut(string(keys[0]), " ")
	key, err := memfifo.ParseKey(counter)
	if err != nil {
		return err
	}
	if _, err := d.Remote(key).FetchAdd(ctx, 0, 1); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // the others have all that they exchange
	return e.Close()
}
