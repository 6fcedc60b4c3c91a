package mcd_test

import (
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// For a link that the endpoint does not have, methods return an error or the zero value.
func TestNICs_ThatAreNotThere(t *testing.T) {
	e := open(t, 2, 2)[0]
	for _, nic := range []int{-1, 2} {
		if m := e.MAC(nic); m != (transport.MAC{}) {
			t.Errorf("MAC(%d) = %v, want the zero MAC", nic, m)
		}
		if index, namespace, ok := e.Interface(nic); index != 0 || namespace != "" || ok {
			t.Errorf("Interface(%d) = %d, %q, %v, want none", nic, index, namespace, ok)
		}
		if c := e.LinkCounters(nic); c != (transport.Counters{}) {
			t.Errorf("LinkCounters(%d) = %+v, want zeros", nic, c)
		}
		if c := e.Checksum(nic); c != mcd.ChecksumAuto {
			t.Errorf("Checksum(%d) = %v, want auto", nic, c)
		}
		_, pathErr := e.Path(1, nic)
		_, probeErr := e.TryProbe(mcd.Path{Node: 1, NIC: nic}, mcd.ProbeOptions{})
		_, pingErr := e.Ping(t.Context(), mcd.Path{Node: 1, NIC: nic}, mcd.ProbeOptions{})
		for name, err := range map[string]error{
			"LinkErr": e.LinkErr(nic), "Path": pathErr, "TryProbe": probeErr, "Ping": pingErr,
		} {
			if err == nil {
				t.Errorf("%s by NIC %d: no error", name, nic)
			}
		}
	}
}
