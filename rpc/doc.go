// Package rpc is calls of one round trip: a request to a service of another node, and its response.
//
//	d, err := rpc.Open(ep, rpc.Config{})                             // on each node
//
//	s, err := d.Serve("add", rpc.ServerConfig{Handler: add})         // node 1
//
//	resp, err := d.Call(ctx, 1, "add", req)                          // node 0
//
// Requests and responses are bytes, of any codec, up to MaxMessage. What is longer, or has no end,
// is for package rawnet.
//
// # What is promised
//
// A handler runs at most once for a call: whatever the network loses, the request arrives once. If
// the server's node dies, leaves or restarts, the call fails with memfifo.ErrPeerDown, and whether
// the handler ran is not known; a call with Options.Idempotent is made again then, until its
// context ends. A call that nobody serves on a node with a domain fails at once.
//
// The caller's deadline and cancellation travel: they end the handler's context. Calls of one node
// to another arrive in the order in which they were made, and those that are made at one time in
// any. Where one handler runs at a time (Config.Concurrency is 1, or it is inline) they begin as
// they arrive, and else in any order.
//
// # How
//
// A request and a response are each one record for a memfifo.Handler, in a domain of its own. A
// handler runs in a goroutine that waited for a request and has polled meanwhile, so that a call
// takes two messages and no change of goroutine; while all of these are busy, others are started.
// With ServerConfig.Inline it runs in the goroutine that polls, whichever that is.
package rpc
