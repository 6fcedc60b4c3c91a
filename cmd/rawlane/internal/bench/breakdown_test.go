package bench

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/udp"
)

// On each kernel link the parts of a round trip, by the kernel's stamps and the clock of the day,
// are what the round trip takes by the monotonic clock; ends that sleep are woken up. The keys are
// those of docs/bench-json.md.
func TestBreakdown_KernelLinks(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "bench-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	const sleeps = -1
	for _, c := range []struct {
		name string
		spin time.Duration
		open func(ifname string) (transport.Link, error)
	}{
		{"ring", 0, func(name string) (transport.Link, error) { return ring.Open(name, ring.Config{}) }},
		{"packet", 0, func(name string) (transport.Link, error) { return packet.Open(name, packet.Config{}) }},
		{"udp", 0, func(name string) (transport.Link, error) { return udp.OpenInterface(name, udp.Config{}) }},
		{"ring, asleep", sleeps, func(name string) (transport.Link, error) { return ring.Open(name, ring.Config{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := measureBreakdown(t, c.spin, c.open)
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			b := r.Breakdown
			if off := math.Abs(b.SumUS/b.StampedUS - 1); off > 0.1 || b.Split < 20 || b.TripUS <= 0 {
				t.Errorf("sum %v of %v: %s", b.SumUS, b.StampedUS, line)
			}
			for _, part := range []int{partSend, partWire, partReceive1, partProgram1, partSend1, partReceive, partProgram} {
				if b.PartsUS[part] <= 0 || b.PartsP99US[part] < b.PartsUS[part] {
					t.Errorf("part %d: %s", part, line)
				}
			}
			if c.spin == sleeps && b.PartsUS[partWake1] <= 0 {
				t.Errorf("an end that sleeps is awake at once: %s", line)
			}
			var keys map[string]any
			_ = json.Unmarshal(line, &keys) // it was marshaled above
			for key := range keys {
				if !strings.Contains(string(doc), "`"+key+"`") {
					t.Errorf("%s is not in docs/bench-json.md", key)
				}
			}
		})
	}
}

// measureBreakdown splits round trips between two nodes in network namespaces.
func measureBreakdown(t *testing.T, spin time.Duration, open func(string) (transport.Link, error)) *result {
	a, b := testbed.OpenPair(t, testbed.ForTest(t, testbed.Config{}), open)
	var nodes [2]*node
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{a.MAC()}}, {ID: 1, MACs: []transport.MAC{b.MAC()}}}
	for k, l := range []transport.Link{a, b} {
		link, err := newPassages(l)
		if err != nil {
			t.Fatal(err)
		}
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Spin: spin}, link)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ep.Close() })
		nodes[k] = &node{ep: ep, link: link}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, nodes[1]) }() // until node 0 says so
	c, err := openClient(ctx, nodes[0].ep)
	if err != nil {
		t.Fatal(err)
	}
	c.link = nodes[0].link
	r := &result{Bench: "latency", Link: "kernel", SizeBytes: 64, Iters: 201}
	if err := errors.Join(c.breakdown(ctx, r), c.end(ctx), <-served); err != nil {
		t.Fatal(err)
	}
	if r.Iters != 202 || r.Split+r.Unsplit != int64(r.Iters) {
		t.Errorf("%d iterations, %d split and %d not", r.Iters, r.Split, r.Unsplit)
	}
	return r
}

// The picture has a bar of each part, and a legend.
func TestBreakdown_Picture(t *testing.T) {
	r := &result{Link: "ring", SizeBytes: 64, Breakdown: &Breakdown{
		StampedUS: 10, Shares: [numParts]float64{.2, .1, 0, .1, .1, .2, 0, .2, .1}}}
	file := filepath.Join(t.TempDir(), "parts.svg")
	b := messageBench{plot: file}
	if err := b.savePlot([]*result{r, r}); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil || !isXML(svg) || strings.Count(string(svg), "wake-up") != 2 || !strings.Contains(string(svg), "#D55E00") {
		t.Errorf("%v: the picture is %s", err, svg)
	}
}

func isXML(b []byte) bool {
	for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// The table has a line for each part, and a bar in which each has its share.
func TestBreakdown_Text(t *testing.T) {
	b := &Breakdown{TripUS: 9, StampedUS: 10.2, SumUS: 10, Split: 3, Unsplit: 1, HardwareUS: 0.5, HardwareP99US: 0.6,
		PartsUS: [numParts]float64{2, 1, 0, 1, 1, 2, 0, 2, 1}, Shares: [numParts]float64{.2, .1, 0, .1, .1, .2, 0, .2, .1}}
	text := b.text(64)
	for _, want := range []string{
		"64 bytes: a round trip takes 9.00 us, with stamps 10.20; 3 of 4 were split\n",
		"  = wire, there and back         1.00       0.00    10.0%\n    of it between the NICs       0.50       0.60\n",
		"  w node 1: wake-up              0.00       0.00     0.0%\n",
		"    sum of one's parts          10.00                 98.0% of a round trip with stamps\n",
		"\n  |SSSSSSSSSSSSSS========rrrrrrrpppppppssssssssssssssRRRRRRRRRRRRRRRPPPPPPP|\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestBreakdown_Misuse(t *testing.T) {
	for want, flags := range map[string][]string{
		"--breakdown: frames in memory pass no driver; give --link packet, ring or udp": {"--breakdown"},
		"--plot: draws a breakdown; give --breakdown, too":                              {"--plot", "x.svg"},
		"--size 3: want 4 or more":                                                      {"--breakdown", "--link", "ring", "--size", "64,3"},
		"--iters 1000001: want 1 to 1000000":                                            {"--breakdown", "--link", "ring", "--iters", "1000001"},
		"--breakdown and --beside: want one of the two":                                 {"--breakdown", "--link", "ring", "--beside", "tcp"},
	} {
		out, errs, status := command(t, append([]string{"bench", "latency"}, flags...)...)
		if status != cli.ExitMisused || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d, said %s", flags, status, errs)
		}
	}
}

// The slowest tenth of the round trips, which a pause of the machine may have hit, has no share.
func TestBreakdown_Shares(t *testing.T) {
	s := newSplit()
	add := func(parts [numParts]time.Duration) {
		var whole time.Duration
		for i := range parts {
			parts[i] *= time.Microsecond
			whole += parts[i]
		}
		t := trip{half: half{send: parts[partSend], wake: parts[partWake], receive: parts[partReceive], program: parts[partProgram]}, whole: whole}
		u := turn{half: half{wake: parts[partWake1], receive: parts[partReceive1], program: parts[partProgram1], send: parts[partSend1]}}
		t.between = parts[partWire] + u.wake + u.receive + u.program + u.send
		s.measured++
		s.add(t, u)
	}
	add([numParts]time.Duration{partWire: 300_000})
	for range 9 {
		add([numParts]time.Duration{1, 2, 0, 1, 1, 2, 0, 2, 1})
	}
	want := [numParts]float64{.1, .2, 0, .1, .1, .2, 0, .2, .1}
	b := s.result()
	for i := range want {
		if math.Abs(b.Shares[i]-want[i]) > 1e-9 {
			t.Errorf("shares %v, want %v", b.Shares, want)
			break
		}
	}
	if b.Split != 10 || b.Unsplit != 0 || math.Abs(b.SumUS-10) > 0.1 || math.Abs(b.PartsUS[partWire]-2) > 0.01 || b.PartsP99US[partWire] < 290_000 {
		t.Errorf("%+v", b)
	}
}
