package vlan

const (
	// MaxRoutes bounds the destinations of a Table: as many nodes as a Plan can have, and the default.
	MaxRoutes = MaxNodes + 1

	// MaxCounts bounds the counts of a Table, one for each destination and VID that ever had a route: 64 VIDs for each of
	// MaxNodes destinations. Each takes 32 bytes.
	MaxCounts = 64 * MaxNodes

	// MaxNodes bounds a Plan. A pass over all its pairs, as Diff makes, is then 8 million steps.
	MaxNodes = 4096

	// MaxVIDs bounds the VIDs of a Plan: switches that carry more VLANs than this at once are rare.
	MaxVIDs = 1024

	// MaxPairs bounds the exceptions of a Plan: all pairs of 1,024 nodes.
	MaxPairs = 1 << 19

	// MaxPlanFile bounds a plan's file, in bytes: enough for MaxPairs. Reading takes some hundred times that memory at worst.
	MaxPlanFile = 8 << 20

	// MaxPriority bounds the priority of a node, above and below 0.
	MaxPriority = 1_000_000

	// MaxName bounds a node's name, and the name of a topology, in bytes.
	MaxName = 255

	// MaxFaults bounds what is reported of a bad file or plan at once: more than a screen is not read.
	MaxFaults = 24

	// MaxTopologyFile bounds a topology's file, in bytes: enough for 100,000 hosts on 1,000 switches. Reading takes some
	// hundred times that memory at worst.
	MaxTopologyFile = 8 << 20

	// MaxTries bounds the random orders that ComputeVLANs tries.
	MaxTries = 1 << 10
)

// Bounds on topologies, so that a spec of a few bytes cannot ask for all memory.
const (
	maxParts   = 1 << 20 // hosts, switches, or links: what the simulator can still run
	maxLevels  = 16      // of a spec: names stay short
	maxMembers = 1 << 24 // links in all VLANs together: 128 MiB
	maxPaths   = 1 << 20 // that ComputeVLANs chooses: two for each pair of 1,000 switches with hosts
)
