package mcd_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// takesAll is a link that takes all frames, and has an error all the same.
type takesAll struct{ transport.Link }

func (l *takesAll) Unwrap() transport.Link { return l.Link }

func (l *takesAll) Send(frames []transport.Frame) (int, error) {
	n, err := l.Link.Send(frames)
	if err == nil {
		err = errors.New("of no frame")
	}
	return n, err
}

// An error of a link that has taken all frames is of none of them.
func TestPostSend_ErrorOfNoFrame(t *testing.T) {
	eps := mcdtest.Open(t, 2, mcdtest.Config{
		Wrap: func(_ mcd.NodeID, _ int, l transport.Link) transport.Link { return &takesAll{l} },
	})
	out, err := eps[0].OpenPort(9, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	to := mcd.To(mcd.Addr{Node: 1, Port: 9})
	for n := 1; n < 4; n++ {
		var ds []*mcd.SendDesc
		for range n {
			ds = append(ds, &mcd.SendDesc{To: to, Payload: []byte("all")})
		}
		if err := out.PostSend(ds...); err != nil {
			t.Error(err)
		}
		for _, d := range ds {
			if err := d.Wait(t.Context()); err != nil {
				t.Errorf("one of %d: %v", n, err)
			}
		}
	}
	if err := out.TrySend(0, to, []byte("all")); err != nil {
		t.Error(err)
	}
}
