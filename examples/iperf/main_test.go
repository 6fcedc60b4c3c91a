package main

import (
	"testing"

	"github.com/rawlane/rawlane/examples/bothways"
)

// The program runs, over rawlane and over TCP, and all bytes come.
func TestProgram(t *testing.T) {
	if err := bothways.Run(t.Context(), serve, ask(4<<20)); err != nil {
		t.Fatal(err)
	}
}
