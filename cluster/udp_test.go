package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport/udp"
)

// overUDP opens node k on a link of this host.
func overUDP(t *testing.T, k int, keys *keyring.Ring, listen string, cfg udp.Config) (*mcd.Endpoint, *udp.Link) {
	t.Helper()
	l, err := udp.Open(listen, cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Keys: keys, Spin: -1}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, l
}

// It is enough to know where one node listens, with keys and without: also if that one starts last,
// and nobody hears the first announcements.
func TestJoin_OverUDP(t *testing.T) {
	for _, keys := range []*keyring.Ring{nil, {Keys: []keyring.Key{{1}}}} {
		for _, seedStarts := range []string{"first", "last"} {
			t.Run(fmt.Sprintf("keys %v, the seed starts %s", keys != nil, seedStarts), func(t *testing.T) {
				const n = 5
				nodes := make([]*mcd.Endpoint, n)
				seed, link := overUDP(t, 0, keys, "127.0.0.1:0", udp.Config{Seeds: []string{"127.0.0.1:9"}})
				at := link.Addr().String()
				if seedStarts == "last" {
					if err := seed.Close(); err != nil {
						t.Fatal(err)
					}
				}
				for k := 1; k < n; k++ {
					nodes[k], _ = overUDP(t, k, keys, "127.0.0.1:0", udp.Config{Seeds: []string{at}})
				}
				started := make(chan []outcome)
				if seedStarts == "last" {
					go func() { started <- joinAll(nodes[1:], n, time.Minute) }()
					seed, _ = overUDP(t, 0, keys, at, udp.Config{Seeds: []string{"127.0.0.1:9"}})
					nodes[0] = seed
					check(t, append(joinAll(nodes[:1], n, time.Minute), <-started...), n)
					return
				}
				nodes[0] = seed
				check(t, joinAll(nodes, n, time.Minute), n)
			})
		}
	}
}

func check(t *testing.T, results []outcome, n int) {
	t.Helper()
	for _, r := range results {
		if r.err != nil {
			t.Error(r.err)
		} else if got := len(r.m.Nodes()); got != n {
			t.Errorf("%d nodes, want %d", got, n)
		}
	}
}

// A host file of addresses is all that nodes need.
func TestJoin_OverUDPByHostfile(t *testing.T) {
	const n = 3
	nodes := make([]*mcd.Endpoint, n)
	for k, l := range listed(t, n) {
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Spin: -1}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		nodes[k] = e
	}
	results := joinAll(nodes, n, time.Minute)
	check(t, results, n)
	for k, node := range results[0].m.Nodes() {
		if node.MACs[0] != nodes[k].MAC(0) {
			t.Errorf("node %d is %v, want %v", k, node.MACs[0], nodes[k].MAC(0))
		}
	}
}

// listed opens links of a host file. Another program may take a port between two looks at it.
func listed(t *testing.T, n int) (links []*udp.Link) {
	t.Helper()
	for range 100 {
		links, err := openListed(t, n)
		if err == nil {
			return links
		}
		for _, l := range links {
			_ = l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("no free ports")
	return nil
}

func openListed(t *testing.T, n int) (links []*udp.Link, err error) {
	var text strings.Builder
	var taken []*udp.Link
	for k := range n {
		l, err := udp.Open("127.0.0.1:0", udp.Config{Seeds: []string{"127.0.0.1:9"}})
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, l)
		fmt.Fprintf(&text, "%d %v\n", k, l.Addr())
	}
	for _, l := range taken {
		_ = l.Close()
	}
	file, err := cluster.ParseHostfile("hosts", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	stations, err := cluster.Stations(file.Hosts, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stations {
		l, err := udp.Open(s.Addr, udp.Config{Stations: stations})
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}
