package memfifo_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// trainEater loses trains until a time: the station has begun anew, and takes none any more.
type trainEater struct {
	trainsLink
	until time.Time
	eaten int
}

func (l *trainEater) Send(frames []transport.Frame) (int, error) {
	if len(frames) < 4 || !time.Now().Before(l.until) {
		return l.Link.Send(frames)
	}
	l.eaten += len(frames)
	return len(frames), nil
}

// A peer is not given up while its station is still taken for one that takes trains, which is so for
// 0.9 s: what is lost as a train, and repeated as one, arrives after that.
func TestTrains_LostUntilTheStationIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		eater := &trainEater{trainsLink: trainsLink{x}}
		cfg := mcdtest.Config{Endpoint: mcd.Config{Spin: -1}}
		eps := [2]*mcd.Endpoint(mcdtest.OpenLinks(t, cfg, []transport.Link{eater}, []transport.Link{trainsLink{y}}))
		var d [2]*memfifo.Domain
		for k, e := range eps {
			var err error
			d[k], err = memfifo.Open(e, memfifo.Config{})
			must(t, err)
		}
		memory, data := make([]byte, 1<<20), bytes.Repeat([]byte("train"), 1<<20/5)
		w, err := d[1].Register(1, memory, memfifo.All)
		must(t, err)
		r := d[0].Remote(w.Key())
		put := func(p []byte) {
			t.Helper()
			must(t, while(eps, func() error { return errors.Join(r.Put(t.Context(), 0, p), d[0].Flush(t.Context())) }))
		}
		put(data[:8])
		eater.until = time.Now().Add(900 * time.Millisecond)
		put(data)
		if eater.eaten == 0 || !bytes.Equal(memory[:len(data)], data) {
			t.Errorf("%d frames lost; the rest arrived: %v", eater.eaten, bytes.Equal(memory[:len(data)], data))
		}
	})
}
