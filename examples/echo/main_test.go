package main

import (
	"testing"

	"github.com/rawlane/rawlane/examples/internal/losstest"
)

// The goodbye comes back also where its first echo is lost: the server has not left yet.
func TestServe_LostGoodbye(t *testing.T) { losstest.Run(t, goodbye, node) }
