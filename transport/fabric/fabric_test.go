package fabric

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/internal/l2switch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLink_OneSwitch(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		links, err := Links(2)
		if err != nil {
			t.Fatal(err)
		}
		return links[0], links[1]
	})
}

func TestLink_TwoSwitchesAndATrunk(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		f := newFabric(t, Config{Ageing: 1e9})
		left, right := f.AddSwitch("left"), f.AddSwitch("right")
		connect(t, left, right, Port{})
		return attach(t, left, Station{}), attach(t, right, Station{})
	})
}

func TestLink_Hub(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		hub := newFabric(t, Config{MTU: 9000, QueueFrames: 128}).AddHub("")
		return attach(t, hub, Station{}), attach(t, hub, Station{})
	})
}

func TestNew_NamesTheFieldThatIsWrong(t *testing.T) {
	for field, cfg := range map[string]Config{
		"MTU":            {MTU: MinMTU - 1},
		"QueueFrames":    {QueueFrames: MaxQueueFrames + 1},
		"Ageing is -1ns": {Ageing: -1},
		"Ageing is 5ns":  {Ageing: 5},
		"Addresses":      {Addresses: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("New(%+v): %v, want an error that names %s", cfg, err, field)
		}
	}
	for _, cfg := range []Config{{}, {MTU: MinMTU}, {MTU: MaxMTU, QueueFrames: 2}} {
		if _, err := New(cfg); err != nil {
			t.Errorf("New(%+v): %v", cfg, err)
		}
	}
}

func TestLinks_NamesAndAddresses(t *testing.T) {
	links, err := Links(300)
	if err != nil {
		t.Fatal(err)
	}
	names, macs := make(map[string]bool), make(map[transport.MAC]bool)
	for _, l := range links {
		names[l.Name()], macs[l.MAC()] = true, true
		if !l.MAC().IsLocal() || l.MAC().IsMulticast() {
			t.Errorf("%v is no locally administered station address", l.MAC())
		}
	}
	if len(names) != 300 || len(macs) != 300 {
		t.Errorf("300 links have %d names and %d addresses", len(names), len(macs))
	}
	if first, last := links[0].MAC().String(), links[299].MAC().String(); first != "02:00:00:00:00:01" || last != "02:00:00:00:01:2c" {
		t.Errorf("addresses from %s to %s", first, last)
	}
	if _, err := Links(l2switch.MaxPorts + 1); err == nil {
		t.Error("more links than ports: no error")
	}
}
