package memfifo_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// The parcels before one that cannot be posted are sent, and hold up no later operation.
func TestPost_ThoseBeforeAnErrorAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 64)
		good := &memfifo.Parcel{To: r, Data: []byte("good")}
		bad := &memfifo.Parcel{To: r, Off: -1, Data: []byte("bad")}
		if err := c.domains[0].Post(good, bad); err == nil {
			t.Error("an offset below 0 was posted")
		}
		must(t, good.WaitRemote(ctx))
		must(t, r.Put(ctx, 8, []byte("put")))
		must(t, c.domains[0].Flush(ctx))
		if got := w.Bytes()[:11]; !bytes.Equal(got, []byte("good\x00\x00\x00\x00put")) {
			t.Errorf("%q", got)
		}
	})
}

// A parcel that was never posted, as one before it cannot be for instance, holds nobody up.
func TestParcel_WaitOfWhatWasNeverPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		bad, behind := &memfifo.Parcel{To: r, Off: -1}, &memfifo.Parcel{To: r}
		if err := c.domains[0].Post(bad, behind); err == nil {
			t.Error("an offset below 0 was posted")
		}
		for name, q := range map[string]*memfifo.Parcel{"refused": bad, "behind it": behind, "new": {To: r}} {
			if err := errors.Join(q.Wait(ctx), q.WaitRemote(ctx)); err != nil || q.Done() {
				t.Errorf("%s: %v, done %v", name, err, q.Done())
			}
		}
	})
}

func TestPost_ToThisNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w := c.window(t, 0, 64)
		q := &memfifo.Parcel{To: c.domains[0].Remote(w.Key()), Data: []byte("here"), Notify: memfifo.OnFirst}
		must(t, c.domains[0].Post(q))
		must(t, q.Wait(ctx))
		must(t, q.WaitRemote(ctx))
		if string(w.Bytes()[:4]) != "here" || w.Notified() != 1 {
			t.Errorf("%q, %d notifications", w.Bytes()[:4], w.Notified())
		}
		q.Off = 61
		if err := c.domains[0].Post(q); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("beyond the window: %v", err)
		}
	})
}
