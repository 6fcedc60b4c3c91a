package vlan

// Bounds on topologies, so that a spec or a file of a few bytes cannot ask for all memory.
const (
	maxParts    = 1 << 20 // hosts, switches, or links: what the simulator can still run
	maxLevels   = 16      // of a spec: names stay short
	maxMembers  = 1 << 24 // links in all VLANs together: 128 MiB
	maxNameLen  = 64      // of a switch or host: what fits a table's column
	maxFileSize = 1 << 26 // bytes of a topology's file: 64 MiB
)
