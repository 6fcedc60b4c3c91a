package xsk

import "fmt"

// Mode is how sockets get frames from the NIC, and give them to it.
type Mode int

// The modes, in the order in which they are tried.
const (
	ModeAuto Mode = iota // the best that there is
	ZeroCopy             // the NIC reads and writes the frames' memory itself
	Native               // the program runs in the driver, and the kernel copies
	Generic              // the program runs behind the driver, and the kernel copies
)

var modes = [...]string{"auto", "zero-copy", "native", "generic"}

// ParseMode returns the mode of a name that String gives.
func ParseMode(name string) (Mode, error) {
	for m, n := range modes {
		if n == name {
			return Mode(m), nil
		}
	}
	return ModeAuto, fmt.Errorf("mode %q: want auto, zero-copy, native or generic", name)
}

// Valid reports whether it is one of the modes.
func (m Mode) Valid() bool { return m >= 0 && int(m) < len(modes) }

// String names the mode as users do: auto, zero-copy, native or generic.
func (m Mode) String() string {
	if !m.Valid() {
		return "unknown"
	}
	return modes[m]
}
