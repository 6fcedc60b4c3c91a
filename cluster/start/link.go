package start

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
)

// openLink opens the link by which this node meets the others: what the environment asks for, else
// what reaches them.
func (j *Job) openLink(ctx context.Context, id mcd.ClusterID, env func(string) string) (transport.Link, error) {
	kind, segment := env(EnvLink), env(EnvSegment)
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	if j.Launcher == RawlaneRun { // each has its own interface, or is told what it shares
		if kind == "shm" && segment == "" {
			return nil, fmt.Errorf("%w: %s=shm, and no %s says where the nodes meet (rawlane run --link shm sets both)",
				ErrEnvironment, EnvLink, EnvSegment)
		}
		if kind == "shm" {
			return j.openMemory(segment, id)
		}
		return nearest(segment)(openWire(env))
	}
	at, err := j.places(ctx)
	if err != nil {
		return nil, err
	}
	if at.oneHost && j.Name == "" {
		return nil, fmt.Errorf("%w: %s gives the job no name (set %s to one of its own)",
			ErrEnvironment, j.Launcher, EnvJob)
	}
	if segment == "" {
		segment = fmt.Sprintf("job-%08x", j.hash())
	}
	switch {
	case kind == "shm" && !at.oneHost:
		return nil, fmt.Errorf("%s=shm: not all of the %d processes are on this host", EnvLink, j.Size)
	case kind == "shm", kind == "" && at.oneHost:
		return j.openMemory(segment, id)
	case kind == "udp" && j.pmi != nil, kind == "" && at.shared && j.pmi != nil:
		return nearest(segment)(j.openPort(ctx, env))
	case at.oneHost:
		return nil, fmt.Errorf("%s=%s: the %d processes share this host's interface (leave %s unset, or shm)",
			EnvLink, kind, j.Size, EnvLink)
	case at.shared:
		return nil, fmt.Errorf("several of the %d processes share a host, and so the address of its network interface"+
			" (want one process to a host, all on one, or %s=udp under a launcher with PMI-1; this is %s)",
			j.Size, EnvLink, j.Launcher)
	}
	return nearest(env(EnvSegment))(openWire(env)) // of containers on one host, it may be, that share a folder
}

// openMemory opens a link over shared memory for a job that is on one host. One of more processes
// than meet there would lose frames between some, and nothing would tell. Its address is the
// node's: a process that a launcher starts again is met.
func (j *Job) openMemory(segment string, id mcd.ClusterID) (transport.Link, error) {
	if most := shm.MaxStations + 1; j.Size > most {
		return nil, fmt.Errorf("%d processes on one host: through shared memory %d meet at most "+
			"(want fewer, or more hosts)", j.Size, most)
	}
	link, err := shm.OpenNode(segment, uint32(id), j.Node, shm.Config{})
	if err != nil {
		return nil, err
	}
	return link, nil
}

// nearest returns a function that puts shared memory around a link for those of this host, if a
// segment is named.
func nearest(segment string) func(transport.Link, error) (transport.Link, error) {
	return func(wire transport.Link, err error) (transport.Link, error) {
		if err != nil || segment == "" {
			return wire, err
		}
		link, err := shm.Open(segment, shm.Config{Wire: wire})
		if err != nil {
			return nil, errors.Join(err, wire.Close())
		}
		return link, nil
	}
}

// sharedMemory: other systems have no such link.
const sharedMemory = runtime.GOOS == "linux"

// places is where a job's processes are: the same is found in all of them, as far as their launcher
// tells.
type places struct {
	oneHost bool // all on one
	shared  bool // a network interface by several
}

// places asks the other processes where they are, if there is a way to, and counts them.
func (j *Job) places(ctx context.Context) (places, error) {
	if j.pmi == nil {
		return places{oneHost: sharedMemory && j.Local == j.Size, shared: j.Local != 1}, nil
	}
	here := place()
	all, err := j.tell(ctx, "place", here)
	if err != nil {
		return places{}, err
	}
	seen := map[string]int{}
	for _, p := range all {
		seen[p]++
	}
	j.Local = seen[here]
	return places{oneHost: sharedMemory && j.Local == j.Size, shared: len(seen) < j.Size}, nil
}

// place names this host, and the network namespace: processes of one share its interfaces, and can
// be expected to share folders, which containers on one host do not.
func place() string {
	here, err := os.Readlink("/proc/self/ns/net")
	if err == nil {
		here += fmt.Sprintf("/%016x", mcd.Here().Host)
	} else { // there are no namespaces here
		here, _ = os.Hostname()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(here)) // never fails
	return fmt.Sprintf("%x", h.Sum64())
}

// openWire opens the link of the only process of this host, or namespace: the kind that the
// environment asks for, or else a ring, or UDP where raw sockets are refused.
func openWire(env func(string) string) (transport.Link, error) {
	kind, listen := env(EnvLink), env(EnvListen)
	if kind == "udp" && listen != "" {
		seeds := env(EnvSeeds)
		if seeds == "" {
			return nil, fmt.Errorf("%w: %s=%s, and no %s says where the others listen (rawlane run sets both)",
				ErrEnvironment, EnvListen, listen, EnvSeeds)
		}
		return udp.Open(listen, udp.Config{Seeds: strings.Split(seeds, ",")})
	}
	name, err := networkInterface(env)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "udp":
		return udp.OpenInterface(name, udp.Config{})
	case "packet":
		return packet.Open(name, packet.Config{})
	case "xdp":
		return xdp.Open(name, xdp.Config{})
	}
	link, err := ring.Open(name, ring.Config{})
	if kind == "" && (errors.Is(err, transport.ErrPermission) || errors.Is(err, transport.ErrNotSupported)) {
		log.Printf("no raw sockets here: a udp link instead (%v)", err)
		return udp.OpenInterface(name, udp.Config{})
	}
	if err != nil {
		return nil, err
	}
	return link, nil
}

func checkKind(kind string) error {
	switch kind {
	case "", "ring", "packet", "xdp", "udp", "shm":
		return nil
	}
	return fmt.Errorf("%w: %s=%s (want ring, packet, xdp, udp or shm)", ErrEnvironment, EnvLink, kind)
}

// networkInterface returns the name of the first interface that the environment asks for, or of the
// only Ethernet that is up.
func networkInterface(env func(string) string) (string, error) {
	if name, _, _ := strings.Cut(env(EnvInterfaces), ","); name != "" {
		return name, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	var names []string
	for _, i := range all {
		const want = net.FlagUp | net.FlagRunning | net.FlagBroadcast
		if i.Flags&(want|net.FlagLoopback) == want && len(i.HardwareAddr) == len(transport.MAC{}) {
			names = append(names, i.Name)
		}
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%w: which network interface? There are %d that are up (%s): name one in %s",
			ErrEnvironment, len(names), strings.Join(names, ", "), EnvInterfaces)
	}
	return names[0], nil
}
