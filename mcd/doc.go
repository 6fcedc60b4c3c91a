// Package mcd sends messages between the ports of numbered nodes, straight over Ethernet.
//
//	node 0                          node 1
//	+-----------+                   +-----------+
//	| port 7    |  To: node 1,      | port 7    |
//	| Send -----+--> port 7 --------+-> Recv    |
//	+-----+-----+                   +-----+-----+
//	      link ======= switch ========= link
//
// A node is a number; a table says which MAC address it has on each of its NICs. A node has 256
// ports, each with one owner at a time. A message goes to a port of one node, of the members of a
// multicast group, or of all nodes, and is at most one frame long. It is copied once at the
// receiver: from the link's memory into the buffer that the port's owner posted.
//
// # What is promised
//
// A message arrives whole and unchanged, or not at all: a CRC-32C covers header and payload, or the
// header alone where Config.Checksum leaves payloads to the link, as it does by itself over shared
// memory. Messages of one sender over one NIC to one port arrive in order, as long as the route to
// the node does not change, or changes by a Drain: by another route a message may overtake one
// before it. (On a NIC with several queues messages longer than Endpoint.TrainPayload may overtake
// others, and be overtaken, while the sender sends trains: see package transport/ring.) Nothing
// says whether a message arrived: a frame may be lost on the way, and a message that finds neither
// a posted buffer nor room in the port's backlog is dropped and counted. Packages barrier and
// memfifo add what is missing.
//
// # Sending
//
// Send gives a message to the link and waits while the link has no room. TrySend does not wait.
// PostSend posts descriptors, as MCD has them: they are sent in order as soon as the link has room,
// and are done then. What waits for one destination does not hold up messages to others; what waits
// for a group or for all holds up all that comes later, as it is for these, too.
//
// # Receiving
//
// Recv waits for the next message; PostRecv posts a buffer for it. Or a port has a Receive
// function, which gets what arrives in batches: see PortOptions.
//
// # Polling
//
// A goroutine that waits (Recv, Await) polls the links itself while it spins, and so hears its
// message without a goroutine switch. One goroutine per link, started by Open and ended by Close,
// sleeps in the kernel and takes over when nobody polls, so that a node answers while its program
// computes.
//
// Waiting is adaptive: it spins while messages come quickly, gives the core away between polls if
// that is not quick enough, and sleeps beyond Config.Spin, or where programs that compute keep
// taking its core. Where processes outnumber the cores, start them with GOMAXPROCS set to their
// share of the cores, 1 at least, as "rawlane run" does: the threads that Go starts beyond that
// compete with the other programs', and double the time of a barrier of 32 processes on 2 cores.
//
// # Paths
//
// Every endpoint replies to probes: Ping tells whether a path by a VLAN tag is alive, and its
// round-trip time. The tag of each frame is the router's choice and may change at any time; Drain
// changes it so that no message overtakes another.
//
// The wire is described in docs/wire-format.md. Package mcdtest opens nodes on an in-memory
// network, for tests.
//
// Source: MCD §2.
package mcd
