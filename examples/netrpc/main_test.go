package main

import (
	"testing"

	"github.com/rawlane/rawlane/examples/bothways"
)

// The program runs, over rawlane and over TCP, and each answer is right.
func TestProgram(t *testing.T) {
	if err := bothways.Run(t.Context(), serve, ask(50)); err != nil {
		t.Fatal(err)
	}
}
