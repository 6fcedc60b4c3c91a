package room_test

import (
	"errors"
	"maps"
	"runtime"
	"testing"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
)

// The features are what package ethtool says, in a hundredth of its memory.
func TestFeatures(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	err := bed.Node(0).Do(func() error {
		e, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		theirs, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer theirs.Close()
		for _, ifname := range []string{"lo", testbed.Interface(0)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := e.Features(ifname)
			runtime.ReadMemStats(&after)
			if err != nil {
				return err
			}
			want, err := theirs.Features(ifname)
			if err != nil {
				return err
			}
			if !maps.Equal(got, want) || len(want) < 30 {
				t.Errorf("%s has the features %v, want %v", ifname, got, want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 32<<10 {
				t.Errorf("to ask for them takes %d bytes", took)
			}
		}
		if _, err := e.Features("none0"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("the features of an interface that is not there: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The features are those of an interface of the namespace where the sockets were opened, as all
// answers, wherever the caller is by then.
func TestFeatures_ElsewhereThanTheCaller(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	const ifname = "elsewhere0"
	var e *room.Ethtool
	err := bed.Node(0).Do(func() (err error) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = ifname
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "elsewhere1"}); err != nil {
			return err
		}
		e, err = room.NewEthtool()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if driver, err := e.DriverName(ifname); err != nil || driver != "veth" {
		t.Errorf("the driver of %s is %q, %v", ifname, driver, err)
	}
	if features, err := e.Features(ifname); err != nil || len(features) < 30 {
		t.Errorf("%s has the features %v, %v", ifname, features, err)
	}
}
