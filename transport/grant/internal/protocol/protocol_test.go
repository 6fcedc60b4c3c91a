package protocol

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

func number(n uint32) *uint32 { return &n }

// A request goes over as it is, with the EtherType filled in.
func TestRequestsGoOver(t *testing.T) {
	for _, r := range []Request{
		{Do: Open, Interface: "eth0"},
		{Do: Open, Interface: "abcdefghijklmno", EtherType: 0x88b6, Ring: true},
		{Do: Open, Interface: "!~", Ring: true, Slots: 2, Cluster: number(0)},
		{Do: Open, Interface: "eth0.5", Ring: true, Slots: MaxSlots, Cluster: number(1<<32 - 1)},
		{Do: Open, Interface: "eth0", XDP: true},
		{Do: Open, Interface: "eth0", XDP: true, Mode: "zero-copy", NoVLANs: true, Slots: 64},
		{Do: Lock, Interface: "eth0", Cluster: number(7), Port: 255},
		{Do: Unlock, Interface: "eth0", Cluster: number(7)},
	} {
		got, err := ParseRequest(Append(nil, &r))
		if err != nil {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		if r.EtherType == 0 {
			r.EtherType = transport.EtherTypeDefault
		}
		if string(Append(nil, got)) != string(Append(nil, &r)) {
			t.Errorf("%+v became %+v", r, got)
		}
	}
}

// The wire, byte by byte: a service and its programs need not be of one version.
func TestGolden(t *testing.T) {
	for want, message := range map[string]any{
		`{"do":"open","interface":"eth0","ether_type":34997,"ring":true,"slots":64,"cluster":7}`: &Request{
			Do: Open, Interface: "eth0", EtherType: 0x88b5, Ring: true, Slots: 64, Cluster: number(7)},
		`{"do":"open","interface":"eth0","ether_type":34997,"xdp":true,"mode":"native","no_vlans":true,"slots":64}`: &Request{
			Do: Open, Interface: "eth0", EtherType: 0x88b5, XDP: true, Mode: "native", NoVLANs: true, Slots: 64},
		`{"do":"lock","interface":"eth0","cluster":0,"port":9}`: &Request{Do: Lock, Interface: "eth0", Cluster: number(0), Port: 9},
		`{}`: &Reply{},
		`{"error":{"cause":"port_locked","text":"x","pid":5}}`: &Reply{Error: &RefusalError{Cause: PortLocked, Text: "x", PID: 5}},
		`{"open":{"interface":"eth0","index":3,"mtu":1500,"mac":"02:00:00:00:00:01","ether_type":34997,"filters_vlans":true,` +
			`"tx_queues":4,"namespace":"77","slot_size":2048,"slots":64}}`: &Reply{Open: &Opened{
			"eth0", 3, 1500, transport.MAC{2, 0, 0, 0, 0, 1}, 0x88b5, true, 4, "77", 2048, 64, nil}},
		`{"open":{"interface":"eth0","index":3,"mtu":1500,"mac":"02:00:00:00:00:01","ether_type":34997,"tx_queues":4,` +
			`"xdp":{"mode":"native","fallback":"why","chunk":2048,"slots":64,"queues":2}}}`: &Reply{Open: &Opened{
			Interface: "eth0", Index: 3, MTU: 1500, MAC: transport.MAC{2, 0, 0, 0, 0, 1}, EtherType: 0x88b5, TxQueues: 4,
			XDP: &OpenedXDP{"native", "why", 2048, 64, 2}}},
		`{"error":{"cause":"occupied","text":"x","pid":5,"program":"p"}}`: &Reply{
			Error: &RefusalError{Occupied, "x", 5, "p"}},
	} {
		if got := string(Append([]byte("x"), message)); got != "x"+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if (&RefusalError{Cause: Denied, Text: "why"}).Error() != "why" {
		t.Error("a refusal does not say why")
	}
}

// wrongRequests are refused, and why.
var wrongRequests = map[string]string{
	"":                                    "not understood",
	"x":                                   "not understood",
	"[]":                                  "not understood",
	`{"do":"open","interface":1}`:         "not understood",
	`{"do":"open","interface":"eth0"} {}`: "more than one object",
	`{"do":"open","interface":"eth0"}x`:   "more than one object",
	`{"do":"open","interface":"eth0","more":1}`:                          `unknown field "more"`,
	`{"do":"close","interface":"eth0"}`:                                  `do "close" (want open, lock or unlock)`,
	`{"interface":"eth0"}`:                                               `do ""`,
	`{"do":"open"}`:                                                      `interface "" (want the name`,
	`{"do":"open","interface":"abcdefghijklmnop"}`:                       "interface",
	`{"do":"open","interface":"."}`:                                      "interface",
	`{"do":"open","interface":".."}`:                                     "interface",
	`{"do":"open","interface":"a b"}`:                                    "interface",
	`{"do":"open","interface":"a\nb"}`:                                   "interface",
	`{"do":"open","interface":"a/b"}`:                                    "interface",
	`{"do":"open","interface":"a:b"}`:                                    "interface",
	`{"do":"open","interface":"a\u007fb"}`:                               "interface",
	`{"do":"open","interface":"ä"}`:                                      "interface",
	`{"do":"open","interface":"eth0","ether_type":65535}`:                "for one EtherType",
	`{"do":"open","interface":"eth0","ether_type":65536}`:                "not understood",
	`{"do":"open","interface":"eth0","port":1}`:                          "port: is for lock",
	`{"do":"open","interface":"eth0","slots":64}`:                        "slots 64: out of range",
	`{"do":"open","interface":"eth0","ring":true,"slots":1}`:             "slots 1: out of range",
	`{"do":"open","interface":"eth0","ring":true,"slots":-2}`:            "slots -2: out of range",
	`{"do":"open","interface":"eth0","ring":true,"slots":65537}`:         "slots 65537: out of range",
	`{"do":"open","interface":"eth0","ring":true,"xdp":true}`:            "want one of the two",
	`{"do":"open","interface":"eth0","mode":"native"}`:                   "are for xdp",
	`{"do":"open","interface":"eth0","ring":true,"no_vlans":true}`:       "are for xdp",
	`{"do":"open","interface":"eth0","xdp":true,"mode":"fast"}`:          `mode "fast" (want auto`,
	`{"do":"open","interface":"eth0","xdp":true,"slots":65537}`:          "slots 65537: out of range",
	`{"do":"lock","interface":"eth0","cluster":1,"xdp":true}`:            "no ring",
	`{"do":"lock","interface":"eth0","port":1}`:                          "want a cluster",
	`{"do":"unlock","interface":"eth0","port":1}`:                        "want a cluster",
	`{"do":"lock","interface":"eth0","cluster":1,"ring":true}`:           "no ring",
	`{"do":"lock","interface":"eth0","cluster":1,"slots":64}`:            "no ring",
	`{"do":"lock","interface":"eth0","cluster":4294967296}`:              "not understood",
	`{"do":"lock","interface":"eth0","cluster":1,"port":256}`:            "not understood",
	`{"do":"open","interface":"eth0"}` + strings.Repeat(" ", MaxMessage): "longer than 8192 bytes",
}

func TestParseRequestRefuses(t *testing.T) {
	for text, want := range wrongRequests {
		if _, err := ParseRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	longest := `{"do":"open","interface":"eth0"}`
	if _, err := ParseRequest([]byte(longest + strings.Repeat(" ", MaxMessage-len(longest)))); err != nil {
		t.Errorf("the longest message: %v", err)
	}
}

func TestParseReply(t *testing.T) {
	r, err := ParseReply([]byte(`{"error":{"cause":"denied","text":"no"}}`))
	if err != nil || r.Error == nil || r.Error.Cause != Denied || r.Error.Text != "no" || r.Open != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ParseReply([]byte(`{"opened":{}}`)); err == nil || !strings.Contains(err.Error(), "a reply that is none") {
		t.Errorf("%v", err)
	}
}

// Any bytes are a request that is valid and goes over again, or an error; memory is bounded by the
// message.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"do":"open","interface":"eth0","ether_type":34997,"ring":true,"slots":64,"cluster":7}`))
	f.Add([]byte(`{"do":"lock","interface":"eth0","cluster":0,"port":9}`))
	f.Add([]byte(`{"do":"open","interface":"eth0"}`))
	f.Add([]byte(`{"do":"open","interface":"a\"b"}`)) // which the kernel allows, and slog quotes
	f.Add([]byte(`{"do":"open","interface":"eth0","xdp":true,"mode":"native","no_vlans":true,"slots":64}`))
	for _, text := range slices.Sorted(maps.Keys(wrongRequests)) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRequest(b)
		if err != nil {
			return
		}
		again, err := ParseRequest(Append(nil, r))
		if err != nil || !bytes.Equal(Append(nil, again), Append(nil, r)) {
			t.Errorf("%q became %+v, and then %+v, %v", b, r, again, err)
		}
		if strings.ContainsAny(r.Interface, " \n:/") || r.Slots < 0 || r.Slots > MaxSlots || r.Do != Open && r.Cluster == nil ||
			r.XDP && r.Ring || !r.XDP && r.Mode != "" {
			t.Errorf("%q is taken for %+v", b, r)
		}
	})
}

// Any bytes of a service, which need not be ours, are a reply that goes over again, or an error.
func FuzzParseReply(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"error":{"cause":"port_locked","text":"x","pid":5}}`, `{"opened":{}}`, `{"open":{"mac":"x"}}`, `{}{}`, ``,
		`{"open":{"interface":"eth0","index":3,"mtu":1500,"mac":"02:00:00:00:00:01","ether_type":34997,"filters_vlans":true,` +
			`"tx_queues":4,"namespace":"77","slot_size":2048,"slots":64}}`,
		`{"open":{"interface":"eth0","xdp":{"mode":"native","fallback":"why","chunk":2048,"slots":64,"queues":2}}}`,
		strings.Repeat(" ", MaxMessage+1),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReply(b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a reply that is none: ") {
				t.Error(err)
			}
			return
		}
		again, err := ParseReply(Append(nil, r))
		if err != nil || !bytes.Equal(Append(nil, again), Append(nil, r)) {
			t.Errorf("%q became %+v, and then %+v, %v", b, r, again, err)
		}
	})
}
