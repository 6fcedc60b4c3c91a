package fabric

const (
	// DefaultMTU is Ethernet's.
	DefaultMTU = 1500
	// MinMTU is the payload of the shortest frame on a wire, in bytes.
	MinMTU = 46
	// MaxMTU is what fits into an IP-sized length; real jumbo frames end at 9,000 to 16,000 bytes.
	MaxMTU = 65535

	// DefaultQueueFrames is the receive ring of common NICs at its larger setting. A queue takes
	// QueueFrames x (MTU + 64) bytes: 1.6 MB by default, of which the system provides the pages as they are used.
	DefaultQueueFrames = 1024
	// MaxQueueFrames keeps a queue's two counts in one machine word.
	MaxQueueFrames = 65536

	// cacheLine keeps what the sender writes and what the poller writes apart, in bytes. Twice 64, as
	// processors fetch lines in pairs.
	cacheLine = 128
)
