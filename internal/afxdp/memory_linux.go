package afxdp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/xsk"
)

// MayLock returns the error that Open would end with where the memory for an interface's frames is
// more than this process may lock. What others of its user have locked counts as well, and is not
// known.
func MayLock(ifi *afpacket.Interface, chunk, slots int) error {
	if HasCapability(unix.CAP_IPC_LOCK) {
		return nil
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return nil // Open will see
	}
	return fits(ifi.Driver.RxQueues, chunk, slots, limit.Cur)
}

// fits is MayLock with what the system has said.
func fits(queues, chunk, slots int, limit uint64) error {
	need := uint64(0)
	for k := range queues {
		cfg := xsk.ConfigOf(k, chunk, slots)
		need += uint64(cfg.MemoryBytes())
	}
	if need <= limit {
		return nil
	}
	return Explain(fmt.Sprintf("lock %d KiB for the frames of %d receive queues, of %d KiB",
		need>>10, queues, limit>>10), unix.ENOBUFS)
}
