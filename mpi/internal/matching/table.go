package matching

// table numbers what the other side has to name. A number is never 0, and is not used again before
// 2^32 others of its place.
type table[T any] struct {
	entries []entry[T]
	free    []uint32
}

type entry[T any] struct {
	generation uint32
	v          *T
}

func (t *table[T]) add(v *T) (id uint64) {
	if len(t.free) == 0 {
		t.free = append(t.free, uint32(len(t.entries)))
		t.entries = append(t.entries, entry[T]{})
	}
	k := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.entries[k].v = v
	t.entries[k].generation++
	return uint64(t.entries[k].generation)<<32 | uint64(k)
}

// len returns how many entries there are.
func (t *table[T]) len() int { return len(t.entries) - len(t.free) }

// get returns what has a number, or nil.
func (t *table[T]) get(id uint64) *T {
	if k := uint32(id); uint64(k) < uint64(len(t.entries)) && t.entries[k].generation == uint32(id>>32) {
		return t.entries[k].v
	}
	return nil
}

// remove frees the place of an entry that is there.
func (t *table[T]) remove(id uint64) {
	t.entries[uint32(id)].v = nil
	t.free = append(t.free, uint32(id))
}

// removeWhere removes the entries for which a function holds.
func (t *table[T]) removeWhere(holds func(v *T) bool) {
	for k, e := range t.entries {
		if e.v != nil && holds(e.v) {
			t.remove(uint64(k))
		}
	}
}
