package memfifo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The figures that users and peers see, in docs and on the wire.
func TestLimits_AreTheDocumentedOnes(t *testing.T) {
	for name, x := range map[string]struct{ got, want int }{
		"DefaultPort":              {int(DefaultPort), 253},
		"DefaultPeerTimeout, in s": {int(DefaultPeerTimeout / time.Second), 2},
		"MaxRecord":                {MaxRecord, 131072},
		"MaxParcels":               {MaxParcels, 65536},
		"MinFIFO":                  {MinFIFO, 64},
		"replies that hold a peer": {maxReplies, 64},
		"Read":                     {int(Read), 1},
		"Write":                    {int(Write), 2},
		"Atomic":                   {int(Atomic), 4},
		"All":                      {int(All), 7},
		"Never":                    {int(Never), 0},
		"Silent":                   {int(Silent), 1},
		"Left":                     {int(Left), 2},
		"Restarted":                {int(Restarted), 3},
		"DataLost":                 {int(DataLost), 4},
	} {
		if x.got != x.want {
			t.Errorf("%s is %d, want %d", name, x.got, x.want)
		}
	}
}

// A TryPush takes the longest record that fits a frame, and refuses one that is longer by a byte.
func TestTryPush_UpToAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, raw := openRaw(t)
		r := d.Remote(Key{Node: 1})
		most := d.MaxFrameRecord()
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := r.TryPush(soon, make([]byte, most)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d bytes: %v", most, err)
		}
		if n := len(raw.said()); n != opTryPush.size(most) {
			t.Errorf("%d bytes were sent, want %d", n, opTryPush.size(most))
		}
		if err := r.TryPush(t.Context(), make([]byte, most+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", most+1, err)
		}
	})
}
