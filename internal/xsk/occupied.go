package xsk

import "fmt"

// ProgramName is the name of rawlane's program that sends frames to these sockets, as the kernel
// shows it.
const ProgramName = "rawlane_link"

// OccupiedError: the interface runs an XDP program already, and runs no second one.
type OccupiedError struct {
	Program string // its name; "" if the system does not tell
	PID     int    // of the process that holds it; 0 if none does, or the system does not tell
}

// Ours reports whether it is the program of another link xdp. Links of packages ring and packet on
// the interface then receive nothing of that link's EtherType.
func (e *OccupiedError) Ours() bool { return e.Program == ProgramName }

func (e *OccupiedError) Error() string {
	text := "the interface runs an XDP program already" + Holder(e)
	switch {
	case e.Ours():
		return text + " (end that one; programs that share an interface all use link ring, " +
			"which receives nothing beside link xdp)"
	case e.PID != 0:
		return text + " (end that one, or use link ring)"
	}
	return text + " (take it off: ip link set NAME xdp off; or use link ring)"
}

// Holder says which program it is, and of which process, as far as that is known: words that follow
// others.
func Holder(e *OccupiedError) (text string) {
	if e.Program != "" {
		text += ", " + e.Program
	}
	if e.PID != 0 {
		text += fmt.Sprintf(", of process %d", e.PID)
	}
	return text
}
