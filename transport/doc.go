// Package transport defines a link: one attachment to an Ethernet segment.
//
//	        Send ->  +------+  -> the wire
//	program          | Link |
//	        <- Poll  +------+  <- the wire
//	           Wait: sleep until Poll has something
//
// A link is small on purpose. It has an address and an MTU, sends frames, hands out those that
// arrived, and can sleep until there are some. The links are:
//
//	transport/fabric   in memory: switches and hubs, no privilege
//	transport/packet   AF_PACKET through the runtime's poller: works everywhere
//	transport/ring     AF_PACKET with a memory-mapped receive ring: the fast one
//	transport/xdp      AF_XDP: past the kernel's network stack, into memory that it shares
//	transport/shm      shared memory between processes of one host, alone or beside another link
//	transport/udp      UDP datagrams: no privilege, any network, any system
//
// Everything else is a wrapper: a link around a link, so that tests and tools combine them freely.
//
//	transport/capture  writes the frames to a pcapng file
//	transport/fault    loses, delays and alters frames, by a seed
//	transport/trace    logs the frames
//
// A link promises no more than Ethernet: frames may be lost; those that arrive come in the order in
// which they were sent on one path. It does promise that a VLAN tag arrives as it was sent, and
// that a priority tag (VID 0) is told from no tag. Package transport/linktest checks these promises
// on any link.
package transport
