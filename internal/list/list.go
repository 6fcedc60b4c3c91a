// Package list is a list of values that hold their own nodes, such as posted descriptors and queued
// work requests: no operation allocates, and a value is removed without a search.
package list

// List holds values in the order in which they came. The zero List is empty.
type List[T any] struct{ front, back *Node[T] }

// Node is a value's place in a list; the value has it as a field. It is in one list at a time.
type Node[T any] struct {
	list       *List[T] // nil: in none
	prev, next *Node[T]
	value      *T
}

// In reports whether the node is in a list.
func (n *Node[T]) In() bool { return n.list != nil }

// Next returns the value behind the node's, or nil.
func (n *Node[T]) Next() *T { return n.next.get() }

// Front returns the first value, or nil.
func (l *List[T]) Front() *T { return l.front.get() }

func (n *Node[T]) get() *T {
	if n == nil {
		return nil
	}
	return n.value
}

// PushBack puts a value behind the last one. Its node must be in no list.
func (l *List[T]) PushBack(n *Node[T], value *T) {
	*n = Node[T]{list: l, prev: l.back, value: value}
	if l.back == nil {
		l.front = n
	} else {
		l.back.next = n
	}
	l.back = n
}

// PopFront removes the first value and returns it, or returns nil.
func (l *List[T]) PopFront() *T {
	v := l.Front()
	if v != nil {
		l.Remove(l.front)
	}
	return v
}

// Remove takes a value out. It returns false if its node is not in the list.
func (l *List[T]) Remove(n *Node[T]) bool {
	if n.list != l {
		return false
	}
	if n.prev == nil {
		l.front = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.back = n.prev
	} else {
		n.next.prev = n.prev
	}
	*n = Node[T]{}
	return true
}
