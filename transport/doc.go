// Package transport says what a link is: one attachment to an Ethernet segment.
//
//	        Send ->  +------+  -> the wire
//	program          | Link |
//	        <- Poll  +------+  <- the wire
//	           Wait: sleep until Poll has something
//
// A link is small on purpose. It gives its address and its MTU, takes frames, hands out those that
// arrived, and can sleep until there are some. Everything else is a wrapper that is itself a link:
// [github.com/rawlane/rawlane/transport/capture] writes what passes to a pcapng file,
// [github.com/rawlane/rawlane/transport/fault] loses and delays it by a seed,
// [github.com/rawlane/rawlane/transport/trace] logs it. So every test and tool composes the same pieces.
//
// The links themselves:
//
//	transport/fabric   in memory: switches and hubs, no privilege
//	transport/packet   AF_PACKET through the runtime's poller: works everywhere
//	transport/ring     AF_PACKET with a memory-mapped receive ring: the fast one
//
// A link promises no more than Ethernet does: frames may be lost, and arrive in the order they were sent
// on one path, or not at all. It does promise that a VLAN tag arrives as it was sent, and that a frame
// with priority tag VID 0 is told apart from an untagged one.
//
// Package [github.com/rawlane/rawlane/transport/linktest] holds the conformance suite for links.
package transport
