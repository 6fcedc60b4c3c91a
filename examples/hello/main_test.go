package main

import (
	"testing"

	"github.com/rawlane/rawlane/examples/internal/losstest"
)

// Node 0 hears the answer also where the first one is lost: node 1 has not left yet.
func TestHello_LostAnswer(t *testing.T) { losstest.Run(t, "hello, node 0", hello) }
