package mpi

import (
	"errors"
	"slices"
)

// Close ends the world: waits fail with ErrClosed, and so do sends that are not complete. What was
// sent is delivered first, for as long as the others answer; who waits for a request whose memory
// these may use returns behind that. Before all this Close waits until what Bsend has sent is
// received, for as long as some of it is in each Config.PeerTimeout. The error names the processes
// that have not confirmed what was sent, or have not received what was buffered for them, with how
// many messages are lost so. It does not wait for those that are known to be down. Close it before
// its endpoint: a world whose endpoint was closed fails all with ErrClosed, and tells nobody.
func (w *World) Close() (err error) {
	w.mu.Lock()
	if w.ending {
		w.mu.Unlock()
		<-w.closing
		return nil
	}
	w.ending = true
	defer close(w.closing)
	defer func() { err = errors.Join(w.close(), w.lostBuffered()) }() // also if the wait does not return
	w.mu.Unlock()
	w.drain()
	return nil
}

// close ends the world, of which nothing is waited for any more. It is called once.
func (w *World) close() error {
	w.mu.Lock()
	w.endWaits()
	for _, c := range w.comms {
		c.flushMulticasts()
	}
	for _, p := range w.all {
		if !p.met { // then nothing is lost that it has not taken
			w.layer.KnowDown(p.ID)
		}
	}
	w.layer.Closing()
	w.beginTouched()
	for w.sending() { // others wait for what is queued
		w.idle.Wait()
	}
	w.mu.Unlock()
	w.end()
	// Others hear first that the process goes.
	err := w.depart()
	err = errors.Join(err, w.barriers.Close(), w.closeMulticasts())
	w.running.Wait()
	return err
}

// endWaits ends all that waits. From then on records are not taken, and the engine is not asked:
// requests are their callers'. The caller holds mu.
func (w *World) endWaits() {
	w.closed = true
	w.endFetches()
	if w.held != nil {
		w.held.Stop()
	}
	for w.active != nil {
		w.complete(w.active, ErrClosed)
	}
	w.wakeProbes()
	for _, v := range w.windows {
		v.end(ErrClosed)
	}
	w.endAgreements()
}

// endpointClosed ends all that waits, as the endpoint was closed before the world: nothing comes,
// or goes, any more.
func (w *World) endpointClosed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.unplugged = true
		w.endWaits()
	}
}

// depart says goodbye to the others. Memory of requests is lent until then.
func (w *World) depart() error {
	defer close(w.departed)
	for _, p := range w.unanswering() {
		w.layer.Domain.WriteOff(p.ID)
	}
	return w.layer.Close()
}

// sending reports whether something is on its way to others. The caller holds mu.
func (w *World) sending() bool {
	for _, v := range w.windows {
		if sent, _ := v.sent(); !sent {
			return true
		}
	}
	return w.forgetWindows() > 0 || slices.ContainsFunc(w.all, func(p *process) bool { return p.busy && p.err == nil })
}

// unanswering returns the processes that answer nothing, or nothing that is taken: they are down,
// or may not be there at all.
func (w *World) unanswering() (all []*process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.all {
		if p.err != nil || !p.met {
			all = append(all, p)
		}
	}
	return all
}

// closeLayer ends a world that could not be opened. The caller holds mu, which records wait for.
func (w *World) closeLayer() error {
	w.closed = true
	w.end()
	w.mu.Unlock()
	defer w.mu.Lock()
	return w.layer.Close()
}
