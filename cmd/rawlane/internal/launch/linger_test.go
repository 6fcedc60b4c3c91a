package launch_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// The node that has left after its last answer, which was lost, does not fail the one that asked,
// nor keep the next node from being told.
func TestDismissNodeThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, closeAll, err := mcdtest.Start(3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closeAll() }()
		told := make(chan string, 1)
		stays, err := cluster.OpenExchanger(eps[2], cluster.ExchangerConfig{
			Answer: func(_ mcd.NodeID, request []byte) ([]byte, bool) {
				told <- string(request)
				return nil, true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stays.Close() }()
		x, err := cluster.OpenExchanger(eps[0], cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = x.Close() }()
		if err := launch.Dismiss(t.Context(), x, []mcd.NodeID{1, 2}, []byte("end")); err != nil {
			t.Error(err)
		}
		select {
		case request := <-told:
			if request != "end" {
				t.Errorf("node 2 was told %q", request)
			}
		default:
			t.Error("node 2 was not told")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := launch.Dismiss(ended, x, []mcd.NodeID{1}, []byte("end")); err == nil {
			t.Error("no error, and the context has ended")
		}
	})
}
