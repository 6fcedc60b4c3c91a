package bench

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// ticking is a clock that is 100 ns later at each look, and more at those that have a pause.
func ticking(pauses map[int]time.Duration) func() monotime.Time {
	at, looks := monotime.At(time.Hour), 0
	return func() monotime.Time {
		looks++
		at = at.Add(100*time.Nanosecond + pauses[looks])
		return at
	}
}

// Pauses are those between two looks that are as long as is asked for; they and their sum are of the
// time that was watched, and what the look at the context took is none.
func TestPauses(t *testing.T) {
	var p pauses
	p.init(5 * time.Microsecond)
	err := p.watch(t.Context(), 10*time.Millisecond, ticking(map[int]time.Duration{
		10: 20 * time.Microsecond, 20: 40 * time.Microsecond, 30: 4800 * time.Nanosecond, 40: 4900 * time.Nanosecond,
		looks + 3: time.Millisecond, // behind the second look at the context
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := p.result()
	if p.taken.TotalCount() != 3 || p.lost != 65200*time.Nanosecond {
		t.Errorf("%d pauses, %v; want 3 of 65.2µs", p.taken.TotalCount(), p.lost)
	}
	if got := r.PerS; got < 299 || got > 300 {
		t.Errorf("%v pauses a second, want 300", got)
	}
	if r.Seconds < 0.01 || r.Seconds > 0.0102 {
		t.Errorf("%v s, want 0.01", r.Seconds)
	}
	if r.MaxUS < 40 || r.MaxUS > 40.2 || r.P50US < 20 || r.P50US > 20.2 {
		t.Errorf("median %v us, longest %v us; want 20.1 and 40.1", r.P50US, r.MaxUS)
	}
	if r.Lost < 0.65 || r.Lost > 0.653 || r.Hit < 0.600 || r.Hit > 0.604 {
		t.Errorf("%v %% lost, %v %% hit; want 0.652 and 0.602", r.Lost, r.Hit)
	}
}

// It ends with its context.
func TestPauses_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	var p pauses
	p.init(time.Microsecond)
	if err := p.watch(ctx, time.Hour, ticking(nil)); !errors.Is(err, why) {
		t.Errorf("%v, want its cause", err)
	}
}

// Without a choice the cores are those of a benchmark's first two nodes; one that this process may
// not run on is refused.
func TestJitter_Cores(t *testing.T) {
	for _, c := range []struct {
		asked, allowed, want []int
		err                  string
	}{
		{nil, []int{4, 0, 5}, []int{4, 0}, ""},
		{nil, []int{3}, []int{3}, ""},
		{nil, nil, []int{notPinned, notPinned}, ""},
		{[]int{5, 4, 5}, []int{4, 0, 5}, []int{5, 4}, ""},
		{[]int{7}, nil, []int{7}, ""},
		{[]int{4, 1}, []int{4, 0, 5}, nil, "--cores 1: this process may run on [0 4 5] alone"},
	} {
		b := &jitterBench{cores: c.asked}
		switch err := b.choose(c.allowed); {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%v of %v: %v, want %q", c.asked, c.allowed, err, c.err)
			}
		case err != nil || !slices.Equal(b.cores, c.want):
			t.Errorf("%v of %v: %v, %v; want %v", c.asked, c.allowed, b.cores, err, c.want)
		}
	}
}

// The command prints a line for each core.
func TestJitter(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: takes a second")
	}
	var out strings.Builder
	cmd := newJitterCommand()
	cmd.SetArgs([]string{"--seconds", "1", "--json"})
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var r jitterResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Seconds < 1 || r.Bench != "jitter" || r.Host.Cores < 1 {
			t.Errorf("%s", line)
		}
	}
	if out.Len() == 0 {
		t.Error("it has printed nothing")
	}
}
