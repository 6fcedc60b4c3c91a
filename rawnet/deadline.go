package rawnet

import "time"

// deadline ends the waits of one direction of a connection, or those of a listener. Net.mu guards
// it.
type deadline struct {
	at     time.Time // zero: none
	passed bool
	timer  *time.Timer // made by the first deadline that lies ahead
}

// expirer is told that a deadline has passed, with Net.mu held.
type expirer interface{ expire() }

// expire ends the wait.
func (w *waiter) expire() { w.wake() }

// expire ends the Write that waits, and those to come.
func (w *writeContext) expire() { (*Conn)(w).endWrites() }

// set replaces the deadline, and tells e once it has passed: at once if it lies behind.
func (d *deadline) set(n *Net, t time.Time, e expirer) {
	d.at, d.passed = time.Time{}, false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.passed = true
		e.expire()
		return
	}
	d.at = time.Now().Add(left)
	if d.timer != nil {
		d.timer.Reset(left)
		return
	}
	d.timer = time.AfterFunc(left, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !d.at.IsZero() && !time.Now().Before(d.at) { // else it was changed meanwhile
			d.at, d.passed = time.Time{}, true
			e.expire()
		}
	})
}

// stop ends the timer.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
