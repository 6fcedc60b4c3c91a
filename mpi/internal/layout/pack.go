package layout

import "fmt"

// Size returns how many bytes are in it: MPI_Type_size.
func (l *Layout) Size() int { return l.size }

// Extent returns where it begins, and the distance from one to the next: MPI_Type_get_extent.
func (l *Layout) Extent() (lower, extent int) { return l.lower, l.extent }

// TrueExtent returns where its first byte is, and how far it is from there behind its last one:
// MPI_Type_get_true_extent.
func (l *Layout) TrueExtent() (lower, extent int) { return l.first, l.end - l.first }

// Check says why count of them, one behind the other, are not all in a memory of some bytes.
func (l *Layout) Check(memory, count int) error {
	var most Layout
	last := most.product(count-1, l.extent) // where the last one is
	most.product(count, l.size)
	first, end := l.first+min(last, 0), l.end+max(last, 0)
	err := l.failure()
	switch {
	case err != nil:
		return err
	case count < 0:
		return fmt.Errorf("%d layouts: %w", count, ErrArgument)
	case count == 0 || l.size == 0:
		return nil
	case most.err != nil:
		return most.err
	case first < 0 || end > memory:
		return fmt.Errorf("bytes %d to %d of %d: %w", first, end, memory, ErrRange)
	}
	return nil
}

// Whole returns the place of count of them if they are one piece of memory.
func (l *Layout) Whole(count int) (at, size int, ok bool) {
	if size = count * l.size; size == 0 {
		return 0, 0, true
	}
	if len(l.runs) > 1 || l.runs[0].n > 1 || count > 1 && l.extent != l.size {
		return 0, 0, false
	}
	return l.first, size, true
}

// Pack copies count of them out of a memory that Check has found large enough, into a message of
// their size: MPI_Pack.
func (l *Layout) Pack(message, memory []byte, count int) {
	for k := range count {
		for _, r := range l.runs {
			at := k*l.extent + r.at
			for range r.n {
				message = message[copy(message, memory[at:at+r.size]):]
				at += r.stride
			}
		}
	}
}

// Unpack copies a message, which may be shorter, to count of them in a memory that Check has found
// large enough: MPI_Unpack.
func (l *Layout) Unpack(memory, message []byte, count int) {
	for k := range count {
		for _, r := range l.runs {
			at := k*l.extent + r.at
			for range r.n {
				if len(message) == 0 {
					return
				}
				message = message[copy(memory[at:at+r.size], message):]
				at += r.stride
			}
		}
	}
}
