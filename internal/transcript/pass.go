package transcript

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Pass lets time pass for one core: advance is called at each of its deadlines, and not before now.
// It returns the instant at the end.
func Pass(
	now monotime.Time, d time.Duration, deadline func() (at monotime.Time, ok bool), advance func(monotime.Time),
) monotime.Time {
	end := now.Add(d)
	for {
		at, ok := deadline()
		if !ok || at.After(end) {
			return end
		}
		if at.After(now) {
			now = at
		}
		advance(now)
	}
}
