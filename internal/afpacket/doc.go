// Package afpacket is what the links over AF_PACKET have in common.
//
//	transport/ring  ---+                   +--- sender: frames to bytes, to the kernel
//	                   +--- Attachment ----+--- groups: which multicast frames are wanted
//	transport/packet --+    (embedded)     +--- Poller: goroutines asleep until a frame arrives
//	                                       +--- linkState: is the interface up, and still there
//
// A link adds its receiving socket, as a [Socket], and its Poll.
//
// The socket is bound to all EtherTypes and filtered in the kernel. The kernel takes the 802.1Q tag
// off a frame before it looks for sockets of one EtherType: such a socket would get tagged frames
// without their tag.
package afpacket

// A ring's number of slots: where it is left open, unless these would take more than defaultMemory
// bytes; and at most.
const (
	DefaultSlots  = 1024
	defaultMemory = 16 << 20
	MaxSlots      = 1 << 16
)
