// Package server is the service that hands packet sockets to programs that may not open them. The
// command `rawlane grant` runs it; package grant is its client, and docs/without-root.md its guide.
//
//	a program connects ---> who is it (SO_PEERCRED)? what do the rules allow? within its limit?
//	           <--- refusal: the line to add, or the group to join
//	           <--- receiving socket: filter locked, bound, ring set up and kept mapped here
//	                sending socket: receives nothing
//	           <--- of link xdp: the XDP program's attachment, a socket for each receive queue
//	           ---> lock port 7 of cluster 1 <--- a descriptor that holds the port's name
//	hangs up   ---> its ring's mapping and its locks go, and its XDP program
//
// The service has no part in the frames, and what it has handed out outlives it: a service that was
// started anew knows the ports that are locked from the names in the kernel.
package server

import (
	"log/slog"
	"time"

	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Config of a service.
type Config struct {
	// Rules is the path of the file that says who may have sockets.
	Rules string
	// Logger gets a line for each grant and each refusal. Nil is slog.Default().
	Logger *slog.Logger

	idle time.Duration // in place of idleTimeout, in tests
}

// Rules is a parsed file of rules. String prints it in one spelling.
type Rules = rules.Rules
