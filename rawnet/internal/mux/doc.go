// Package mux carries many streams of bytes between two nodes in records that arrive once and in
// order. It is a pure core: it does no I/O, knows no clock and takes no lock. What is lost is the
// affair of the connection below, and deadlines are those of callers.
//
//	dialer                                acceptor
//	Dial      ── Open service, limit ──>  Listener: queued, or refused
//	Open      <── Accept limit ─────────  Accept
//	          ── Data ───────────────────> posted buffer of a Read, else the stream's buffer
//	          <── Window limit ──────────  the reader has taken half of a window
//	          ── Fin ────────────────────> Read returns EOF
//	          <── Close ─────────────────  writes fail: nobody reads
//
// A stream is in one of these states:
//
//	state     event                  next      sends
//	Opening   Accept                 Open      -
//	Opening   Refuse                 Ended     -
//	Opening   the dialer gives up    Ended     Reset
//	Pending   Accept was sent        Open      -
//	Pending   the listener closes    Ended     Reset
//	Open      CloseWrite             Open      Fin, behind its data
//	Open      Fin and CloseWrite     Ended     -
//	Open      Close                  Ended     Close, behind its data
//	Open      Reset                  Ended     Reset, behind its data
//	Open      a Close comes          Ended     -
//	Open      more than the limit    Ended     Reset
//	any       a Reset comes          Ended     -
//	any       the peer is down       Ended     -
//
// Each stream has a receive window of its own: its sender sends up to the limit that it was told,
// as MAX_STREAM_DATA of RFC 9000 §4.1. So a stream whose reader is slow takes a window of memory
// and holds up no other one. Memory comes from a pool as bytes arrive that no Read waits for, and
// goes back when they are read: an idle stream has none.
//
// A stream is named by the node that dialed it and a number that this node never uses again: it
// counts from a random one, so a record of a former life names no stream of the next.
package mux
