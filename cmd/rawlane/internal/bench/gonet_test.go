package bench

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/bench/gonet"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// Allocations beside rawlane's are of the round trips that count: a connection takes dozens.
func TestBeside_AllocationsOfWhatCounts(t *testing.T) {
	s, err := gonet.Serve(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, network := range []string{"udp", "tcp"} {
		c, _ := clientOf(t, 3)
		c.echoes = map[mcd.NodeID]string{1: s.Addr().String(), 2: s.Addr().String()}
		least := math.Inf(1) // the servers accept meanwhile, and other tests' goroutines end
		for range 10 {
			r := &result{Link: network, SizeBytes: 4, Iters: 1}
			if err := c.beside(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			least = min(least, r.Allocs)
		}
		if least > 12 {
			t.Errorf("%s: %v allocations in each round trip", network, least)
		}
	}
}

// What a key costs is told of rawlane's lines: those of package net have no key.
func TestBeside_HasNoKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := keyring.New().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{Endpoint: mcd.Config{KeyFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeAll() }()
	b := messageBenches[0]
	b.sizes, b.iters, b.networks = []int{4}, 20, []string{"udp"}
	b.keyCost = newKeyCost(b.iters)
	b.keyCost.round, b.keyCost.sum[measured{0, false}] = b.keyCost.rounds-1, &result{P50US: 1}
	var out bytes.Buffer
	form := result{Bench: b.name, Link: "ring", Keys: launch.Authenticated, Iters: b.iters}
	var ends [2]error
	var running sync.WaitGroup
	for k, ep := range eps {
		running.Go(func() {
			ends[k] = b.part(t.Context(), &node{ep: ep, nic: "lo", form: form, lines: cli.Lines{Out: &out, JSON: true}})
		})
	}
	running.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := errors.Join(ends[:]...); err != nil || len(lines) != 2 {
		t.Fatalf("%v, printed %s", err, &out)
	}
	if !strings.Contains(lines[0], `"key_ratio":`) || !strings.Contains(lines[1], `"link":"udp"`) ||
		strings.Contains(lines[1], `"key_ratio":`) {
		t.Errorf("printed %s", &out)
	}
}
