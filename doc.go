// Package rawlane is messaging over raw Ethernet, for programs on a cluster of ordinary NICs and
// switches. The package itself is empty; begin with package mcd and examples/hello.
//
// Links, one attachment to an Ethernet segment each:
//
//	transport             what a link promises; frames, tags, addresses
//	transport/fabric      links in memory: switches, hubs, cables
//	transport/packet      AF_PACKET through the runtime's poller: works everywhere
//	transport/ring        AF_PACKET with a receive ring in shared memory: the fast one
//	transport/xdp         AF_XDP: past the kernel's network stack, into memory that it shares
//	transport/shm         shared memory between processes of one host, alone or beside a wire
//	transport/udp         frames in UDP datagrams: no privilege, any network, any system
//	transport/capture     a wrapper that writes frames to a pcapng file
//	transport/fault       a wrapper that loses, delays and alters frames, by a seed
//	transport/trace       a wrapper that logs frames
//	transport/grant       packet sockets for programs that may not open them, from a service
//	transport/grant/server  that service
//	transport/linktest    the conformance suite that every link passes
//
// VLAN routes, the choice between several paths:
//
//	vlan                  which tag frames to an address carry: all that a sender needs
//	vlan/topology         networks of switches, their VLANs, their configuration
//	vlan/traffic          how much each node sends to each other one
//	vlan/plan             which VID each pair of nodes uses
//	vlan/optimize         the plan that spreads a traffic best
//	vlan/control          which pairs change their VID in a running network, and why
//	vlan/manager          a program's session with its node's manager, and a client of any manager
//	vlan/manager/server       the manager: the daemon that holds a node's routes
//	vlan/manager/coordinator  changes the plans of several nodes together
//	vlan/manager/failover     moves pairs off VLANs that have failed
//	vlan/manager/api          requests, answers and errors of the manager's HTTP interface
//
// Messages, barriers, memory:
//
//	mcd                   nodes, ports, multicast groups, descriptors
//	mcd/decode            a gopacket layer for captures of messages
//	mcd/keyring           the keys of a cluster whose frames are authenticated
//	mcd/mcdtest           a cluster of endpoints in memory, for tests
//	barrier               groups of nodes that wait for each other
//	barrier/schedule      the barrier algorithms as data
//	barrier/offload       a barrier's Center in the path of its NIC
//	barrier/decode        reads their messages from captures
//	memfifo               remote write and read, atomics, FIFOs
//	memfifo/decode        reads its operations from captures
//	rawnet                connections: net.Conn and net.Listener between nodes
//	rawnet/decode         reads its streams and packets from captures
//	rpc                   calls of one round trip, at most once
//	rpc/decode            reads its requests and responses from captures
//	mpi                   message passing: ranks, tags, collective operations, windows
//	cluster               who the nodes are: host file, discovery
//	cluster/start         a program's node, as rawlane run, mpirun, srun or nobody starts it
//	cluster/decode        reads what nodes say that find each other from captures
//	cluster/pathtest      measures the paths between nodes and finds faults
//
// Simulation, in virtual time:
//
//	sim                   an event queue, and a network that costs what LogP says
//	sim/ether             an Ethernet of switches and cables, frame by frame
//	sim/mcd               the hosts, switches and hub of MCD's paper, as a model
//	sim/mbcf              the workstations and networks of MPI/MBCF's paper, as a model
//	sim/vbft              the experiments of the VLAN-based fat tree papers
//	sim/cenju             the transfer model of Cenju-3: a FIFO, and a processor that invalidates
//	sim/explore           all states that a few cores can reach, in any order of events
package rawlane
