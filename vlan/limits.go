package vlan

const (
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

// Bounds on choosing routes.
const (
	// maxPathTable bounds the table of all paths that pairs may choose, in hops: 256 MiB.
	maxPathTable = 1 << 26

	// maxProved is how many pairs Optimize tries to prove its plan for, and maxProof how many paths it tries out for that: some
	// tens of milliseconds.
	maxProved, maxProof = 24, 1 << 19

	// maxChain bounds how many pairs change places in one chain. In a fat tree of n leaves Kempe's chains have at most
	// n pairs when each leaf has one pair of each VID; a chain that has not ended by then seldom does.
	maxChain = 200

	// maxCutWork bounds the search for narrow places, in pairs looked at: some tens of milliseconds.
	maxCutWork = 1 << 24

	// maxTrafficLine bounds a line of a traffic's file, in bytes, and maxTrafficFile the file: maxFlows lines.
	maxTrafficLine, maxTrafficFile = 1000, maxFlows * 32

	// maxPatience bounds how many periods a Controller remembers, maxLog its decisions, and maxNamed the pairs that an explanation names.
	maxPatience, maxLog, maxNamed = 60, 1000, 6

	// maxRests bounds how long pairs rest whose changes do not last, in times of Rest.
	maxRests = 64
)
