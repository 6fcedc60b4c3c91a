package rpc

import (
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Refusals that wait for a node which takes none are bounded, whatever they are for: a service that
// nobody serves, or a record of another version.
func TestRefusals_AreBounded(t *testing.T) {
	const backlog, more = 10, 100
	for what, rec := range map[string][]byte{
		"no service":      wire.AppendRequest(nil, 7, "nobody's", 0, nil),
		"another version": append([]byte{0x21, 0, 0, 0}, "8 bytes."...),
	} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			d, err := Open(eps[1], Config{Backlog: backlog})
			if err != nil {
				t.Fatal(err)
			}
			other, err := memfifo.Open(eps[0], memfifo.Config{Port: DefaultPort})
			if err != nil {
				t.Fatal(err)
			}
			d.mu.Lock()
			d.frame = 0 // nothing goes at once
			p := d.layer.Node(0)
			p.responding = true // a worker waits for room
			for range backlog + maxRefusals - more/2 {
				p.responses.push(response{rec: make([]byte, wire.HeadLen)})
			}
			d.mu.Unlock()
			for range more {
				if err := other.Remote(memfifo.PublicKey(1, 1)).Push(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.mu.Lock()
			if n, most := p.responses.len(), backlog+maxRefusals; n != most || d.stats.Refused != more {
				t.Errorf("%s: %d refusals wait, and %d are counted; want %d and %d", what, n, d.stats.Refused, most, more)
			}
			p.responses = responses{}
			d.mu.Unlock()
			_ = d.Close()
			_ = other.Close()
		})
	}
}
