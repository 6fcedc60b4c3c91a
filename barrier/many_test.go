package barrier

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// BenchmarkAdvance is what the timer costs while one barrier of a service waits, and those of 1,000
// other masks do nothing, or wait for later.
func BenchmarkAdvance(b *testing.B) {
	for name, others := range map[string]bool{"others idle": false, "others wait": true} {
		b.Run(name, func(b *testing.B) {
			eps := mcdtest.Open(b, 12, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			s, err := Open(eps[0], Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			g, err := s.Group(GroupConfig{PeerTimeout: time.Hour})
			for mask := uint64(1); mask <= 1000 && err == nil; mask++ {
				var set *memberSet
				if set, err = g.memberSet(Bits(2*mask | 1)); err == nil && others {
					_, err = set.arrive(0)
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.advance(clock.Now())
			}
		})
	}
}
