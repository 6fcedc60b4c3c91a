package xdp

import "github.com/rawlane/rawlane/internal/xsk"

// OccupiedError: the interface runs an XDP program already, and runs no second one. Its fields say
// what the system tells of it: Program, the program's name, PID, the process that holds it,
// Interface, and Attached, how it is attached, in ip's word.
// Its method Ours reports whether it is known to be the program of another link of this package.
// Links of packages ring and packet on the interface then receive nothing of that link's EtherType.
type OccupiedError = xsk.OccupiedError
