package mcd

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/rawlane/rawlane/transport"
)

// Place is where a node runs. Nodes that share a host wait for its cores, and reach each other by
// a path of their own: package barrier chooses algorithms by it. The zero Place is unknown.
type Place struct {
	// Host tells kernels apart: nodes of one host have the same, and by Here so do clones of a
	// virtual machine that were resumed from one snapshot. 0 is unknown.
	Host uint64 `json:"host"`
	// Cores are those that the node may use, a bit for each: core c is bit c modulo 64. So of hosts
	// with more cores two that differ by 64 look like one, and pinned processes like crowded ones:
	// there, say better (cluster.Config.Place).
	Cores uint64 `json:"cores"`
	// Usable is how many of them it uses at one time.
	Usable uint16 `json:"usable"`
	// Path is how it reaches other nodes of its host.
	Path transport.LocalPath `json:"path"`
}

// IsZero reports whether p is unknown.
func (p Place) IsZero() bool { return p.Host == 0 }

// String puts p on one line.
func (p Place) String() string {
	if p.IsZero() {
		return "unknown host"
	}
	return fmt.Sprintf("host %016x, %d of %d cores, by %v", p.Host, p.Usable, bits.OnesCount64(p.Cores), p.Path)
}

// Here returns the place of a node in this process, with so many links.
func Here(links ...transport.Link) Place {
	cores, count := usableCores()
	p := Place{Host: thisHost(), Cores: cores, Usable: usable(count, runtime.GOMAXPROCS(0))}
	for i, l := range links {
		if path := transport.LocalPathOf(l); i == 0 || path < p.Path {
			p.Path = path
		}
	}
	return p
}

// usable returns how many of so many cores a process uses at one time that runs goroutines on so
// many.
func usable(cores, procs int) uint16 { return uint16(min(cores, procs, math.MaxUint16)) }

// Place returns where this node runs.
func (e *Endpoint) Place() Place {
	links := make([]transport.Link, len(e.nics))
	for i := range e.nics {
		links[i] = e.nics[i].link
	}
	return Here(links...)
}

// thisHost is a hash of the kernel's boot, which containers share; where there is none, of this
// process: then no two processes are known to share a host.
var thisHost = sync.OnceValue(func() uint64 {
	return hostOf(bootID())
})

// hostOf returns the host of a boot, or one that is no other's if the boot is not known: odd
// numbers, as 0 is unknown.
func hostOf(boot string) uint64 {
	if boot == "" {
		return rand.Uint64() | 1
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(boot)) // never fails
	return sum.Sum64() | 1
}

// allCores is the set of so many cores from 0 on.
func allCores(count int) uint64 {
	return 1<<count - 1 // of 64 and more: all
}
