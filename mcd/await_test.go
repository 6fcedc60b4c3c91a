package mcd_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
)

// Who waits for something of a layer above hears when the endpoint is closed, as nobody will make progress any more: also who begins
// to wait later. What is done by then counts.
func TestAwait_EndsWithTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, 1, 1, func(cfg *mcd.Config) { cfg.Spin = -1 })[0] // as nothing here takes time
		ended := make(chan error)
		go func() {
			var never mcd.Completion
			ended <- e.Await(context.Background(), &never)
		}()
		synctest.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		var never, done mcd.Completion
		done.Complete(nil)
		for what, err := range map[string]error{"slept": <-ended, "later": e.Await(context.Background(), &never)} {
			if !errors.Is(err, mcd.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := e.Await(context.Background(), &done); err != nil {
			t.Errorf("done before: %v", err)
		}
	})
}
