package mpi

import "slices"

// lockQueue is who holds or waits for the lock of one process' memory, in the order in which they
// came: those at the front that may hold it together do. So nobody is overtaken: a shared lock
// waits behind an exclusive one that waits.
type lockQueue []lockEntry

// lockEntry is a lock that a process holds or waits for.
type lockEntry struct {
	rank      int
	id        uint32 // of the process' own
	exclusive bool
	granted   bool
}

// add appends a lock. It reports false for a process that has one in the queue.
func (q *lockQueue) add(rank int, id uint32, exclusive bool) bool {
	if slices.ContainsFunc(*q, func(e lockEntry) bool { return e.rank == rank }) {
		return false
	}
	*q = append(*q, lockEntry{rank: rank, id: id, exclusive: exclusive})
	return true
}

// remove removes a lock of a process, held or waited for; all of it with id 0.
func (q *lockQueue) remove(rank int, id uint32) {
	*q = slices.DeleteFunc(*q, func(e lockEntry) bool { return e.rank == rank && (id == 0 || e.id == id) })
}

// grant calls f with each lock that is now held and was not before.
func (q lockQueue) grant(f func(rank int, id uint32)) {
	for k := range q {
		e := &q[k]
		if e.exclusive && k > 0 {
			return
		}
		if !e.granted {
			e.granted = true
			f(e.rank, e.id)
		}
		if e.exclusive {
			return
		}
	}
}
