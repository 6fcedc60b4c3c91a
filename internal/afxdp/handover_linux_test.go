package afxdp

import (
	"errors"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// Sockets that another process cannot map are not handed over: kernels before Linux 6.4 refuse it for
// those that are bound, and later ones, as here, for those whose interface is gone, by the same error.
func TestMayHandOver(t *testing.T) {
	node, _ := veth(t)
	var a *Attachment
	err := node.Do(func() error {
		ifi, err := afpacket.FindInterface("eth0")
		if err != nil {
			return err
		}
		a, err = Open(ifi, 2048, Config{EtherType: transport.EtherTypeDefault, MAC: ifi.MAC, Slots: 64, Shared: true})
		return err
	})
	if errors.Is(err, transport.ErrNotSupported) && strings.Contains(err.Error(), "6.4") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := a.mayHandOver(); err != nil {
		t.Error(err)
	}
	if err := node.Remove(0); err != nil {
		t.Fatal(err)
	}
	if err := a.mayHandOver(); !errors.Is(err, transport.ErrNotSupported) || !strings.Contains(err.Error(), "link ring") {
		t.Errorf("%v, want what the kernel lacks", err)
	}
}
