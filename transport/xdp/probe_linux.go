package xdp

import (
	"fmt"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/xdpprog"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// Probe says whether Open would succeed on the interface called name, as far as can be known
// without a change to it: the program is loaded, and not attached. best is the best mode that the
// driver says it has, or ModeAuto if the kernel does not tell (before Linux 6.3).
// Errors: those of Open.
func Probe(name string) (best Mode, err error) {
	if best, err = probe(name); err != nil {
		return best, fmt.Errorf("xdp %s: probe: %w", name, err)
	}
	return best, nil
}

func probe(name string) (Mode, error) {
	ifi, err := afpacket.FindInterface(name)
	if err != nil {
		return ModeAuto, err
	}
	best := Mode(afxdp.DriverMode(ifi.Index))
	chunk, err := afxdp.ChunkFor(ifi, xsk.Mode(best))
	if err != nil {
		return best, err
	}
	p, err := xdpprog.Load(xdpprog.Config{EtherType: transport.EtherTypeDefault, MAC: ifi.MAC, Queues: 1})
	if err != nil {
		return best, afxdp.Explain("load the XDP program", err)
	}
	defer func() { _ = p.Close() }() // it was only a try; so is the socket
	s, err := xsk.Open(xsk.Config{Chunk: chunk, Receive: 2, Send: 2})
	if err != nil {
		return best, afxdp.Explain("open a socket of AF_XDP", err)
	}
	defer func() { _ = s.Discard() }()
	if afxdp.AttachedProgram(ifi.Index) != 0 {
		return best, afxdp.Holder(ifi.Index)
	}
	return best, afxdp.MayLock(ifi, chunk, slots(DefaultSlots))
}
