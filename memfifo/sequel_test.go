package memfifo_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// A Put that continues the last one across a loss says where it belongs: the peer knows another
// end.
func TestSequel_BehindALoss(t *testing.T) {
	const size, part = 60_000, 10_000
	for _, how := range []string{"Put", "parcel", "WriteAt"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, 2, -1, fault.Config{}, 0)
				ctx := limit(t)
				d := c.domains[0]
				w := c.window(t, 1, size)
				r := d.Remote(w.Key())
				put := func(i int) error {
					data := bytes.Repeat([]byte{byte(1 + i)}, part)
					switch how {
					case "parcel":
						return d.Post(&memfifo.Parcel{To: r, Off: int64(i * part), Data: data})
					case "WriteAt":
						_, err := r.WriteAt(data, int64(i*part))
						return err
					}
					return r.Put(ctx, int64(i*part), data)
				}
				must(t, put(0))
				must(t, d.Flush(ctx))
				c.faults[1].Cut(true)
				must(t, put(1)) // is lost
				if err := d.Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("Flush: %v", err)
				}
				c.faults[1].Cut(false)
				must(t, put(2))
				must(t, d.Flush(ctx))
				must(t, put(3))
				must(t, d.Flush(ctx))
				for i, want := range []byte{1, 0, 3, 4, 0, 0} {
					if got := w.Bytes()[i*part:][:part]; !bytes.Equal(got, bytes.Repeat([]byte{want}, part)) {
						t.Errorf("part %d is %d...%d, want %d", i, got[0], got[part-1], want)
					}
				}
				if n := c.domains[1].Counters().Malformed; n > 0 {
					t.Errorf("%d malformed", n)
				}
			})
		})
	}
}

// A Put at the offset where another window's Put ended does not continue that one.
func TestSequel_InAnotherWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		var mems [3][]byte
		var rs [3]*memfifo.Remote
		for i := range mems {
			mems[i] = make([]byte, 16)
			w, err := c.domains[1].Register(uint16(1+i%2), mems[i], memfifo.All)
			must(t, err)
			rs[i] = c.domains[0].Remote(w.Key())
			must(t, rs[i].Put(ctx, int64(4*i), []byte("....")))
			must(t, c.domains[0].Flush(ctx))
			if i == 0 {
				w.Revoke() // the third has its id
			}
		}
		must(t, rs[1].Put(ctx, 0, []byte("1111")))
		must(t, rs[2].Put(ctx, 4, []byte("2222")))
		must(t, rs[0].Put(ctx, 8, []byte("0000"))) // refused
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("with a former key: %v", err)
		}
		for i, want := range []string{"....", "1111....", "\x00\x00\x00\x002222...."} {
			if got := string(bytes.TrimRight(mems[i], "\x00")); got != want {
				t.Errorf("window %d is %q, want %q", i, got, want)
			}
		}
	})
}
