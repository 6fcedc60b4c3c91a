package memfifo

// Operations of a node on its own memory. They are done before the call returns, and wait for
// nothing: the program that would make room in a FIFO may be the one that pushes. The caller holds
// Domain.mu.

// executeHere does an operation. It returns the value if that has one.
func (d *Domain) executeHere(what *request) (value uint64, err error) {
	if d.closed {
		return 0, ErrClosed
	}
	k := what.key
	var refusal Refusal
	switch what.op {
	case opPut:
		refusal = d.put(k.ID, k.Secret, what.off, what.data, what.notify != Never)
	case opPush, opTryPush:
		refusal = d.tryAppend(k.ID, k.Secret, what.data)
	case opGet:
		var w *Window
		if w, refusal = d.checkWindow(k.ID, k.Secret, what.off, uint64(len(what.buf)), Read); refusal == 0 {
			w.read(what.buf, what.off)
		}
	default:
		value, refusal = d.atomic(what.op, k.ID, k.Secret, what.off, what.operand, what.expected)
	}
	return value, what.refused(refusal)
}

// refused returns the error for a refusal that ends an operation, or nil for 0.
func (what *request) refused(refusal Refusal) error {
	switch refusal {
	case 0:
		return nil
	case Full:
		return ErrFull
	}
	return &AccessError{Node: what.key.Node, ID: what.key.ID, Reason: refusal, Count: 1}
}
