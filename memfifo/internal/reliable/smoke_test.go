package reliable

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
)

// A stream of numbers, both ways, over a network that loses, doubles and reorders.
func TestSmoke(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		loss := float64(seed%4) * 0.1
		const size = 128
		alloc, free := func() []byte { return make([]byte, size) }, func([]byte) {}
		type flight struct {
			at mono.Time
			to int
			b  []byte
		}
		var air []flight
		now := mono.At(time.Second)
		var conns [2]*Conn
		for i := range conns {
			conns[i] = New(Config{Life: uint32(i + 1), Size: size, Alloc: alloc, Free: free, Start: ^uint32(0) - 50})
		}
		const total = 3000
		var sent, got [2][Lanes]uint32
		pump := func(i int) {
			c := conns[i]
			for f := c.Next(now); f != nil; f = c.Next(now) {
				c.Sent(now)
				n := 1
				if rng.Float64() < 0.1 {
					n = 2
				}
				for range n {
					if rng.Float64() < loss {
						continue
					}
					air = append(air, flight{now.Add(time.Duration(rng.IntN(300)) * time.Microsecond), 1 - i, append([]byte(nil), f...)})
				}
			}
		}
		take := func(i int, l Lane, b []byte) {
			for ; len(b) > 0; b = b[4:] {
				if v := binary.BigEndian.Uint32(b); v != got[i][l] {
					t.Fatalf("seed %d: end %d lane %d got %d, want %d", seed, i, l, v, got[i][l])
				}
				got[i][l]++
				if l == Requests && rng.Float64() < 0.05 && len(b) > 4 {
					conns[i].Hold(l, b[4:])
					return
				}
			}
			conns[i].Taken(l)
		}
		steps := 0
		for got[0] != [Lanes]uint32{total, total} || got[1] != [Lanes]uint32{total, total} {
			if steps++; steps > 3_000_000 || now.Sub(mono.At(0)) > 10*time.Minute {
				t.Fatalf("seed %d: stuck: sent %v got %v now %v", seed, sent, got, now)
			}
			i := rng.IntN(2)
			l := Lane(rng.IntN(2))
			for range rng.IntN(20) {
				if sent[i][l] < total {
					if b := conns[i].Reserve(now, l, 4); b != nil {
						binary.BigEndian.PutUint32(b, sent[i][l])
						sent[i][l]++
					}
				}
			}
			if rng.Float64() < 0.2 {
				for l := range Lane(Lanes) {
					for b, ok := conns[i].Following(l); ok; b, ok = conns[i].Following(l) {
						take(i, l, b)
						if conns[i].Held(l) {
							break
						}
					}
				}
			}
			pump(i)
			// the next thing that happens
			next := now.Add(time.Duration(rng.IntN(50)) * time.Microsecond)
			best := -1
			for k := range air {
				if best < 0 || air[k].at.Before(air[best].at) {
					best = k
				}
			}
			if best >= 0 && !next.Before(air[best].at) {
				f := air[best]
				air[best] = air[len(air)-1]
				air = air[:len(air)-1]
				if now.Before(f.at) {
					now = f.at
				}
				var h Header
				if err := Parse(f.b, &h); err != nil {
					t.Fatal(err)
				}
				if conns[f.to].Handle(now, &h, f.b[HeaderLen:]) == Take {
					take(f.to, h.Lane, f.b[HeaderLen:])
				}
				continue
			}
			now = next
			for i := range conns {
				if at, ok := conns[i].Deadline(); ok && !now.Before(at) {
					if conns[i].Advance(now) {
						t.Fatalf("seed %d: down", seed)
					}
				}
			}
		}
	}
}
