package xsk

import (
	"cmp"
	"fmt"
)

// ProgramName is the name of rawlane's program that sends frames to these sockets, as the kernel
// shows it.
const ProgramName = "rawlane_link"

// OccupiedError: the interface runs an XDP program already, and runs no second one.
type OccupiedError struct {
	Program   string // its name; "" if the system does not tell, as it does root alone
	PID       int    // of the process that holds it; 0 if none does, or the system does not tell
	Interface string // which one; "" if that is not known
	Attached  string // how, in ip's word: xdpdrv, xdpgeneric or xdpoffload; "" if that is not known
}

// Ours reports whether it is known to be the program of another link xdp. Links of packages ring
// and packet on the interface then receive nothing of that link's EtherType.
func (e *OccupiedError) Ours() bool { return e.Program == ProgramName }

func (e *OccupiedError) Error() string {
	text := "the interface runs an XDP program already" + Holder(e)
	switch {
	case e.Ours():
		return text + " (end that one; programs that share an interface all use link ring, " +
			"which receives nothing beside link xdp)"
	case e.PID != 0 && e.Program != "":
		return text + " (end that one, or use link ring)"
	case e.PID != 0:
		return text + " (end that one)"
	case e.Program == "":
		return text + " (" + Seek(e, "beside which link ring receives nothing") + ")"
	}
	return text + " (take it off: " + TakeOff(e) + "; or use link ring)"
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

// Seek says what to do about a program of which the system does not tell whose it is: perhaps a
// link xdp's, about which there are words.
func Seek(e *OccupiedError, beside string) string {
	return fmt.Sprintf("root sees which one, by ip link show %s: end the process that has it, perhaps by a "+
		"link xdp, %s; where no process has it: %s", e.name(), beside, TakeOff(e))
}

// TakeOff is the command that takes off a program that no process holds. It has to name the way in
// which that is attached: else ip looks at the driver's, and takes nothing off.
func TakeOff(e *OccupiedError) string {
	return fmt.Sprintf("ip link set %s %s off", e.name(), cmp.Or(e.Attached, "xdpgeneric off, or xdpdrv"))
}

func (e *OccupiedError) name() string { return cmp.Or(e.Interface, "NAME") }
