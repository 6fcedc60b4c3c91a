package mcd_test

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// frames keeps what a link sends.
type frames struct {
	transport.Link
	sent [][]byte
}

func (l *frames) Send(all []transport.Frame) (int, error) {
	for i := range all {
		l.sent = append(l.sent, all[i].AppendTo(nil))
	}
	return l.Link.Send(all)
}

// AppendFrame returns the bytes of the frame that the same message goes in, tagged or not, and
// sends none.
func TestAppendFrame(t *testing.T) {
	tag := transport.Tagged(transport.Tag{VID: 7, PCP: 3})
	for _, routes := range [][]vlan.Route{nil, {{Dst: transport.Broadcast, OptionalTag: tag}}} {
		table, err := vlan.NewTable(routes)
		if err != nil {
			t.Fatal(err)
		}
		var link *frames
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Router: table, Cluster: 0x01020304},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node == 1 {
					return l
				}
				link = &frames{Link: l}
				return link
			},
		})
		p, err := eps[0].OpenPort(9, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []mcd.Dest{mcd.ToGroup(77, 9), mcd.ToAll(9)} {
			link.sent = nil
			got, err := p.AppendFrame([]byte("before"), 0, to, []byte("message"))
			if err != nil || len(link.sent) != 0 {
				t.Fatalf("%v: %v, %d frames sent", to, err, len(link.sent))
			}
			if err := p.SendVia(t.Context(), 0, to, []byte("message")); err != nil {
				t.Fatal(err)
			}
			if want := append([]byte("before"), link.sent[0]...); !bytes.Equal(got, want) {
				t.Errorf("%v: %x, want %x", to, got, want)
			}
		}
		if _, err := p.AppendFrame(nil, 0, mcd.ToAll(9), make([]byte, 2000)); err == nil {
			t.Error("no error for a message that is too long")
		}
		// It would go to all stations, with the header of a message to one.
		if got, err := p.AppendFrame(nil, 0, mcd.To(mcd.Addr{Node: 1, Port: 9}), nil); err == nil || len(got) != 0 {
			t.Errorf("to one node: %x, %v, want an error", got, err)
		}
	}
	eps := mcdtest.Open(t, 1, mcdtest.Config{Endpoint: mcd.Config{Keys: keyring.New()}})
	p, err := eps[0].OpenPort(9, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.AppendFrame(nil, 0, mcd.ToAll(9), nil); err == nil {
		t.Error("no error with keys")
	}
}
