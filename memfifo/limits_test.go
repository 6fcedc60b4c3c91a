package memfifo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
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
		if n := len(raw.said()); n != opTryPush.Size(most) {
			t.Errorf("%d bytes were sent, want %d", n, opTryPush.Size(most))
		}
		if err := r.TryPush(t.Context(), make([]byte, most+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes: %v", most+1, err)
		}
	})
}

// Data of up to 256 bytes is not cut because little is left in a frame; of more there are 256 at
// least in the part that fills it.
func TestEncode_ShortDataStaysWhole(t *testing.T) {
	for _, x := range []struct {
		left, data int // bytes of data that fit what is left of a frame, and that are put
		want       []int
	}{
		{255, 256, []int{256}},
		{256, 256, []int{256}},
		{255, 300, []int{300}},
		{256, 300, []int{256, 44}},
		{40, 40, []int{40}},
		{39, 40, []int{40}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, raw := openRaw(t)
			r := d.Remote(Key{Node: 1})
			first := d.frameSize - reliable.HeaderLen - opPut.Size(0) - opPut.Size(x.left)
			err := r.PutV(t.Context(), Segment{0, make([]byte, first)}, Segment{1 << 20, make([]byte, x.data)})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			var got []int
			var rec record
			for b := raw.said(); len(b) > 0 && rec.parse(b); b = rec.next {
				got = append(got, len(rec.data))
			}
			if want := append([]int{first}, x.want...); !slices.Equal(got, want) {
				t.Errorf("%+v: parts of %v, want %v", x, got, want)
			}
		})
	}
}
