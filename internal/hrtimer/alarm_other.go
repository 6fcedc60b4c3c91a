//go:build !linux

package hrtimer

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

type alarm struct{}

func newAlarm(func()) *alarm { return nil }

func (*alarm) set(time.Duration) {}

func (*alarm) isAfter(monotime.Time) bool { return true }

func (*alarm) close() {}
