package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

// A master without workers does not wait for results that nobody computes.
func TestNode_Alone(t *testing.T) {
	t.Setenv(start.EnvNode, "")
	synctest.Test(t, func(t *testing.T) {
		cfg := start.Config{Nodes: 1, Limit: time.Hour, Endpoint: mcd.Config{Spin: -1}}
		begin := time.Now()
		err := start.Run(t.Context(), cfg, node)
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "want two nodes or more") || took > time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}
