// Package rawnet gives programs the interfaces of package net over rawlane: connections, listeners
// and packets between nodes, for what is written for net.Conn and would rather have answers in
// microseconds.
//
//	n, err := rawnet.Open(ep, rawnet.Config{})             // on each node
//
//	l, err := n.Listen("echo")                             // node 1
//	c, err := l.Accept()
//
//	c, err := n.Dial("rawlane", "1:echo")                  // node 0
//	c, err := n.DialWait(ctx, "rawlane", "1:echo")         // likewise, before node 1 listens
//	p, err := n.ListenPacket("gossip")
//	client := http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
//
// An address is "node:service". Services have names of any kind, and nothing is configured: who
// listens is asked when somebody dials.
//
// # What is promised
//
// A Conn carries bytes each way, in order and once, whatever the network loses, duplicates or
// reorders. It keeps what net.Conn promises: deadlines, half closes, concurrent use, a Close that
// ends waits, and errors in which errors.Is finds net.ErrClosed, os.ErrDeadlineExceeded and the
// system's ECONNREFUSED, ECONNRESET, EPIPE and EADDRINUSE. Reads and writes allocate nothing.
//
// Each connection has a receive window of its own: none holds up another, and those that write to
// one node have turns. An idle connection takes no buffer and no goroutine. A node with which there
// are connections is probed while it says nothing: if it dies, leaves or restarts, they are reset,
// and the error names it.
//
// Not promised: that what was written before a Close, or a death, was read.
//
// # How
//
// The connections of two nodes share one reliable connection of package memfifo, in a domain of
// their own: a record goes to a memfifo.Handler, whose function writes its bytes into the buffer of
// the Read that waits. docs/wire-format.md has the records, docs/net.md says when to use what.
package rawnet
