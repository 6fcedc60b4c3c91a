package launch

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// Where a link in a namespace cannot be opened, those that were opened before are closed.
func TestInNamespaces_FailsAndClosesAll(t *testing.T) {
	if err := testbed.Available(); err != nil {
		t.Skip(err)
	}
	const kind = "two at most"
	failed := errors.New("no third one")
	var opened []transport.Link
	kernelLinks[kind] = func(string, linkOptions) (transport.Link, error) {
		if len(opened) == 2 {
			return nil, failed
		}
		l, _ := linktest.Pipe()
		opened = append(opened, l)
		return l, nil
	}
	defer delete(kernelLinks, kind)
	if _, _, err := inNamespaces(kind, linkOptions{}, testbed.Config{Nodes: 2, NICs: 2}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	for k, l := range opened {
		if _, err := l.Poll(make([]transport.Frame, 1)); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("link %d: %v", k, err)
		}
	}
}
