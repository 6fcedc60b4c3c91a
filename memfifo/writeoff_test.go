package memfifo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
)

// Close does not wait for a node that was written off, nor names it; for another one it does. To
// write off a node that nothing was done to changes nothing.
func TestWriteOff(t *testing.T) {
	for off := range 3 {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 3, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			var domains []*memfifo.Domain
			for _, ep := range eps {
				d, err := memfifo.Open(ep, memfifo.Config{PeerTimeout: 2 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				domains = append(domains, d)
			}
			w, err := domains[1].Register(1, make([]byte, 8), memfifo.All)
			if err != nil {
				t.Fatal(err)
			}
			remote := domains[0].Remote(w.Key())
			if err := remote.Put(t.Context(), 0, []byte{1}); err != nil {
				t.Fatal(err)
			}
			if err := domains[0].Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = eps[1].Close() // it says nothing to anybody
			if err := remote.Put(t.Context(), 0, []byte{2}); err != nil {
				t.Fatal(err)
			}
			domains[0].WriteOff(mcd.NodeID(off))
			domains[0].WriteOff(1000)
			start := time.Now()
			err = domains[0].Close()
			if took := time.Since(start); (took < time.Second) != (off == 1) || (err == nil) != (off == 1) {
				t.Errorf("node %d is written off: Close has taken %v: %v", off, took, err)
			}
			_ = domains[1].Close()
			_ = domains[2].Close()
		})
	}
}
