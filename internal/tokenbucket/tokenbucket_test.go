package tokenbucket_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/tokenbucket"
)

func TestBucket(t *testing.T) {
	b := tokenbucket.New(10, 3)
	for _, c := range []struct {
		at   time.Duration
		want int // tokens that are there
	}{
		{0, 3}, {50 * time.Millisecond, 0}, {100 * time.Millisecond, 1}, {90 * time.Millisecond, 0},
		{400 * time.Millisecond, 3}, {time.Hour, 3},
	} {
		got := 0
		for b.Take(int64(c.at)) {
			got++
		}
		if got != c.want {
			t.Errorf("at %v: %d tokens, want %d", c.at, got, c.want)
		}
	}
}
