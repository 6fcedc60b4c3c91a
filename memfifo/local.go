package memfifo

// Operations of a node on its own memory. They are done before the call returns, and wait for
// nothing: the program that would make room in a FIFO may be the one that pushes. The caller holds
// Domain.mu.

// sendHere does a put or push.
func (d *Domain) sendHere(what *request) error {
	if what.op == opPush {
		_, err := d.callHere(what)
		return err
	}
	if d.closed {
		return ErrClosed
	}
	w, refusal := d.checkWindow(what.key.ID, what.key.Secret, what.off, uint64(len(what.data)), Write)
	if refusal != 0 {
		return what.refused(refusal)
	}
	w.write(what.off, what.data)
	w.changed(what.notify != Never)
	return nil
}

// callHere does an operation that has a result.
func (d *Domain) callHere(what *request) (value uint64, err error) {
	if d.closed {
		return 0, ErrClosed
	}
	var refusal Refusal
	switch what.op {
	case opPush, opTryPush:
		refusal = d.tryAppend(what.key.ID, what.key.Secret, what.data)
	case opGet:
		refusal = d.getHere(what)
	default:
		value, refusal = d.atomic(what.op, what.key.ID, what.key.Secret, what.off, what.operand, what.expected)
	}
	return value, what.refused(refusal)
}

func (d *Domain) getHere(what *request) Refusal {
	w, refusal := d.checkWindow(what.key.ID, what.key.Secret, what.off, uint64(len(what.buf)), Read)
	if refusal == 0 {
		w.read(what.buf, what.off)
	}
	return refusal
}

// refused returns the error for a refusal by this node itself.
func (what *request) refused(refusal Refusal) error {
	switch refusal {
	case 0:
		return nil
	case Full:
		return ErrFull
	}
	return &AccessError{Node: what.key.Node, ID: what.key.ID, Reason: refusal, Count: 1}
}
