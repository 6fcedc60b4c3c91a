package room_test

import (
	"errors"
	"maps"
	"runtime"
	"testing"

	"github.com/safchain/ethtool"
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
