//go:build !linux

package hrtimer

import "time"

type alarm struct{}

func newAlarm(func()) *alarm { return nil }

func (*alarm) set(time.Duration) {}

func (*alarm) close() {}
