package main

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/cluster/start"
)

// A node whose neighbours would be itself says that it needs others.
func TestSmooth_Alone(t *testing.T) {
	t.Setenv(start.EnvNode, "")
	err := start.Run(t.Context(), start.Config{Nodes: 1}, smooth)
	if err == nil || !strings.Contains(err.Error(), "want two nodes or more") {
		t.Error(err)
	}
}
