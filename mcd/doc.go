// Package mcd sends messages between the ports of numbered nodes, straight over Ethernet.
//
//	node 0                          node 1
//	+-----------+                   +-----------+
//	| port 7    |  To: node 1,      | port 7    |
//	| Send -----+--> port 7 --------+-> Recv    |
//	+-----+-----+                   +-----+-----+
//	      link ======= switch ========= link
//
// A node is a number; a table says which MAC address it has on each of its NICs. A node has 256 ports, each
// owned by one process at most. A message goes to a port of one node, of the members of a multicast group,
// or of all nodes, and is at most one frame long. It is copied once at the receiver: from the link's memory
// into the buffer that the port's owner posted.
//
// # What is promised
//
// A message arrives whole and unchanged, or not at all (a CRC-32C covers header and payload). Messages of
// one sender over one NIC to one port arrive in order. Nothing says whether a message arrived: a frame may
// be lost on the way, and a message that finds neither a posted buffer nor room in the port's backlog is
// dropped and counted. Packages barrier and memfifo add what is missing.
//
// # Who does the work
//
// A goroutine that waits (Recv, Await) polls the links itself while it spins, and so hears its message without
// a goroutine switch. One goroutine per link, started by Open and ended by Close, sleeps in the kernel and
// takes over whenever nobody polls, so that a node answers while its program computes. Handlers run in
// whichever goroutine polls, one at a time per endpoint.
//
// Waiting is adaptive: it spins while messages come quickly, gives the core away between polls if that is
// not quick enough, and sleeps beyond Config.Spin.
//
// Where processes outnumber the cores, a wait gives its core away between looks. Start such programs with GOMAXPROCS set to
// their share of the cores, 1 at least, as "rawlane run" does: the threads that Go starts beyond that compete with the other
// programs', and double what a barrier of 32 processes on 2 cores takes.
//
// # Paths
//
// Every endpoint answers probes, in whichever goroutine polls: Ping tells whether a path by a VLAN tag is alive, and how long
// it is. The tag of each message is the router's choice, which may change while messages are on their way; Fence changes it so that none
// overtakes another.
//
// The wire is described in docs/wire-format.md.
//
// Source: MCD §2.
package mcd
