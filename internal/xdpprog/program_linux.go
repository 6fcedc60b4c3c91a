package xdpprog

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

// MaxScopes is how many scopes a program has room for.
const MaxScopes = 32

// Scope is messages of the clusters from First to Last, to ports.
type Scope struct {
	First, Last uint32
	Ports       [32]uint8 // a bit each: port 9 is bit 1 of byte 1
}

// Config says which frames go to the link's sockets.
type Config struct {
	EtherType   transport.EtherType // behind a tag, if there is one
	MAC         transport.MAC       // frames for this station, and for groups
	Promiscuous bool                // for others, too
	Queues      int                 // receive queues that there are sockets for
	// Scopes are of which messages it may be one; none means all. There are MaxScopes at most.
	Scopes []Scope
}

// Program is a program in the kernel, attached to an interface or not yet.
type Program struct {
	objects  linkObjects
	attached link.Link
}

// Load loads the program. Until SetSocket is called it passes all frames on.
func Load(cfg Config) (*Program, error) {
	if err := room.HaveDescriptors(); err != nil {
		return nil, err
	}
	spec, err := loadLink()
	if err != nil {
		return nil, err
	}
	var scopes [MaxScopes]Scope
	if copy(scopes[:], cfg.Scopes) < len(cfg.Scopes) {
		return nil, fmt.Errorf("%d scopes (at most %d)", len(cfg.Scopes), MaxScopes)
	}
	promiscuous := uint8(0)
	if cfg.Promiscuous {
		promiscuous = 1
	}
	for name, value := range map[string]any{
		"ether_type": uint16(cfg.EtherType), "mac": [6]uint8(cfg.MAC), "promiscuous": promiscuous,
		"scope_count": uint32(len(cfg.Scopes)), "scopes": scopes,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps["sockets"].MaxEntries = uint32(cfg.Queues)
	p := new(Program)
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return nil, err
	}
	return p, nil
}

// Attach runs the program on an interface: in its driver, or in the kernel's generic code, behind
// the driver. The kernel detaches it when the program is closed or the process ends.
func (p *Program) Attach(index int, native bool) (err error) {
	how := link.XDPGenericMode
	if native {
		how = link.XDPDriverMode
	}
	p.attached, err = link.AttachXDP(link.XDPOptions{Program: p.objects.RawlaneLink, Interface: index, Flags: how})
	return err
}

// Attached reports whether Attach was called, and not undone.
func (p *Program) Attached() bool { return p.attached != nil }

// LinkFD is the descriptor of the attachment. While one is open the program stays attached.
func (p *Program) LinkFD() int { return p.attached.(interface{ FD() int }).FD() }

// Detach undoes Attach, also where others have the attachment's descriptor.
func (p *Program) Detach() error {
	if p.attached == nil {
		return nil
	}
	err := p.attached.Detach()
	return errors.Join(err, p.Leave())
}

// Leave closes the attachment's descriptor. The program stays attached if others have it.
func (p *Program) Leave() error {
	if p.attached == nil {
		return nil
	}
	at := p.attached
	p.attached = nil
	return at.Close()
}

// SetSocket sends the frames of a receive queue to a socket.
func (p *Program) SetSocket(queue, fd int) error {
	return p.objects.Sockets.Put(uint32(queue), uint32(fd))
}

// HasSocket reports whether the socket of a receive queue is still open, somewhere. probe is
// another socket, unbound. It is for a program that is detached.
func (p *Program) HasSocket(queue, probe int) (bool, error) {
	// The kernel removes a socket that is closed.
	err := p.objects.Sockets.Update(uint32(queue), uint32(probe), ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return true, nil
	}
	if err == nil {
		err = p.objects.Sockets.Delete(uint32(queue))
	}
	return false, err
}

// Run runs the program on a frame, as if it came to queue 0 of the loopback, and reports whether it
// went to a socket.
func (p *Program) Run(frame []byte) (redirected bool, err error) {
	verdict, err := p.objects.RawlaneLink.Run(&ebpf.RunOptions{Data: frame})
	const redirect = 4 // XDP_REDIRECT
	return verdict == redirect, err
}

// Close detaches the program and unloads it.
func (p *Program) Close() error { return errors.Join(p.Detach(), p.objects.Close()) }
