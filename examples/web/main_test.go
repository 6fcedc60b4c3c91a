package main

import (
	"testing"

	"github.com/rawlane/rawlane/cluster/start"
)

// Node 0 has its answer, and both nodes end.
func TestWeb(t *testing.T) {
	if err := start.Run(t.Context(), start.Config{Nodes: 2, Exact: true}, web); err != nil {
		t.Fatal(err)
	}
}
