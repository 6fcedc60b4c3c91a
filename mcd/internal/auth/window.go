package auth

// The window's size: as WireGuard's. It is that wide because senders of one link take their
// counters before the link's lock, and one that loses its core in between comes a few milliseconds
// late; switches send priorities ahead, too.
const (
	windowBits   = 8192
	blockBits    = 64
	windowBlocks = windowBits / blockBits
	// windowSize is how far behind the highest counter another one may be: the block that the
	// highest is in is in use.
	windowSize = windowBits - blockBits
)

// window remembers which counters have been accepted. The zero window has accepted none.
//
// Source: RFC 6479.
type window struct {
	top    uint64 // the highest one; counters are from 1
	blocks [windowBlocks]uint64
}

// accept reports whether a counter is new and not too old, and remembers it.
func (w *window) accept(counter uint64) bool {
	if counter == 0 || counter > LastCounter {
		return false
	}
	if counter > w.top {
		from, to := w.top/blockBits, counter/blockBits
		for i := range min(to-from, windowBlocks) {
			w.blocks[(from+1+i)%windowBlocks] = 0
		}
		w.top = counter
	} else if w.top-counter >= windowSize {
		return false
	}
	block, bit := &w.blocks[counter/blockBits%windowBlocks], uint64(1)<<(counter%blockBits)
	if *block&bit != 0 {
		return false
	}
	*block |= bit
	return true
}
