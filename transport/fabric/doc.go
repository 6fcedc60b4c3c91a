// Package fabric is a network in memory: switches, hubs and cables, with links attached, each a
// transport.Link. It needs no privilege and no kernel; tests, examples and the demo run on it.
//
//	links, err := fabric.Links(4) // four stations on one switch
//
// Any topology is built from parts:
//
//	f, err := fabric.New(fabric.Config{})         top0     top1
//	top, leaf := f.AddSwitch("top0"), ...           |  \  /  |
//	cable, err := f.Connect(leaf, top,              |  /  \  |
//		fabric.Trunk(100))                        leaf0     leaf1
//	link, err := f.Attach(leaf, fabric.Station{})   / \       / \
//
// Switches learn addresses per VID, flood frames to unknown ones, and treat tags as their ports say
// (see [Port]); hubs repeat. Stations behave as NICs do: they filter by address and pad short
// frames.
//
// # What is guaranteed
//
// A frame is carried the whole way during the sender's Send: when it returns, the frame is in the
// queues of its receivers. Frames of one sender keep their order, and the frames of a Send arrive
// before those of any Send that begins after it has returned. No frame is lost unless you ask for
// it: Config.DropWhenFull, SetUp(false) on a link or cable, a closed link. A receiver that does not
// poll stops its senders with transport.ErrBusy, as Ethernet's flow control does; so a broadcast
// waits for the slowest receiver.
//
// # What is not
//
// There is no bandwidth and no latency: package sim has them. There is no spanning tree: Connect
// refuses a cable that closes a loop for some VID, and the error names the loop.
//
// # Cost
//
// One lock for the fabric, held while a batch is forwarded; polling takes none. Send and Poll
// allocate nothing. On one switch, frames of 64 bytes, 2 shared cores (go test -bench .
// ./transport/fabric):
//
//	send and poll one frame, one goroutine     75 ns
//	the same in batches of 16, per frame       53 ns
//	one goroutine sends, another one polls     9.6 million frames/s
//	half a round trip, both spin               400 ns
//	half a round trip, both asleep in Wait     350 ns
package fabric
