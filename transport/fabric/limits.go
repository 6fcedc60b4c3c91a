package fabric

const (
	// DefaultMTU is Ethernet's MTU.
	DefaultMTU = 1500
	// MinMTU is the payload of the shortest frame on a wire, in bytes.
	MinMTU = 46
	// MaxMTU is a 16-bit length; real jumbo frames end at 9,000 to 16,000 bytes.
	MaxMTU = 65535

	// DefaultQueueFrames is the size of common NICs' larger receive rings. A queue takes
	// QueueFrames x (MTU + 64) bytes: 1.6 MB by default, in blocks that are allocated on first use.
	DefaultQueueFrames = 1024
	// MaxQueueFrames keeps a queue's two counts in one machine word.
	MaxQueueFrames = 65536

	// cacheLine, in bytes, keeps the sender's and the poller's fields apart: twice 64, as
	// processors fetch lines in pairs.
	cacheLine = 128
)
