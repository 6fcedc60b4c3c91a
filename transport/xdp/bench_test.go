//go:build linux

package xdp_test

import (
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/transport/xdp"
)

func BenchmarkSend(b *testing.B) { kernellink.BenchmarkSend(b, opener(xdp.ModeAuto)) }

func BenchmarkSendAndPoll(b *testing.B) { kernellink.BenchmarkSendAndPoll(b, opener(xdp.ModeAuto)) }

func BenchmarkEmptyPoll(b *testing.B) { kernellink.BenchmarkEmptyPoll(b, opener(xdp.ModeAuto)) }
