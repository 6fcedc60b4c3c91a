//go:build linux

// Command keys answers: what do authenticated frames cost? It prints half of a round trip between
// two processes on rings over veth, without a key, with one, and with payloads encrypted, for short
// and for full messages.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/mcd/keyring"
)

func main() {
	b := harness.Bench{Name: "keys", Link: "veth; both ends spin, each on a core of its own",
		Rounds: 15, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// The ways of sending that are compared.
const (
	plain         = "without a key"
	authenticated = "with a key"
	encrypted     = "with a key, encrypted"
)

// limits are what a message of a size may cost with a key, over what it costs without.
var limits = map[int]float64{64: 1.2, 1400: 1.35}

var sizes = []int{64, 1400}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	if err := b.MakeDir(); err != nil {
		return r, err
	}
	files := map[string]string{}
	for name, encrypt := range map[string]bool{authenticated: false, encrypted: true} {
		files[name] = filepath.Join(b.Dir, strconv.FormatBool(encrypt))
		ring := keyring.New()
		ring.Encrypt = encrypt
		if err := ring.WriteFile(files[name]); err != nil {
			return r, err
		}
	}
	var all []harness.Variant
	tables := map[int]*harness.Table{}
	for _, size := range sizes {
		t := newTable(size, b.Rounds)
		tables[size] = t
		r.Tables = append(r.Tables, t)
		for _, name := range []string{authenticated, encrypted} {
			all = append(all, variant(b, t, name, files[name], size))
		}
	}
	if b.Rows {
		return harness.RowsOf(all), nil
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, all); err != nil {
		return r, err
	}
	for _, size := range sizes {
		t := tables[size]
		r.Targets = append(r.Targets, harness.Target{
			What:  fmt.Sprintf("%d bytes: with a key at most %v x", size, limits[size]),
			Got:   t.Find(authenticated).Over(t.Find(plain)),
			Limit: limits[size],
		})
	}
	return r, nil
}

// variant measures with a key and, first, without it.
func variant(b *harness.Bench, t *harness.Table, name, file string, size int) harness.Variant {
	return harness.Variant{Name: name, Rows: []string{plain, name}, Run: func(ctx context.Context) error {
		type line struct {
			Keys string  `json:"keys"`
			P50  float64 `json:"p50_us"`
			P99  float64 `json:"p99_us"`
		}
		lines, err := harness.Lines[line](ctx, &b.Programs, "latency", "--link", "ring", "--size", strconv.Itoa(size),
			"--iters", strconv.Itoa(b.Iters), "--key-file="+file)
		for _, got := range lines {
			if got.Keys == "none" {
				t.Add(plain, got.P50, got.P99)
			} else {
				t.Add(name, got.P50, got.P99)
			}
		}
		return err
	}}
}

func newTable(size, rounds int) *harness.Table {
	t := harness.NewLatencyTable("Half a round trip", size, rounds)
	t.AddRatio("/ plain", "ratio_to_plain", plain)
	return t
}
