package server

import (
	"io/fs"
	"time"

	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Bounds of the service.
const (
	// maxConns bounds the connections of all users that a rule names: a connection costs 20 KiB
	// here, besides its ring. Further ones are refused.
	maxConns = rules.MaxLinks
	// maxStrangers bounds those of users that no rule names: one person can be 65,536 of them (uids
	// of /etc/subuid), who must not take the connections of the others.
	maxStrangers = 64
	// maxDismissed is how many connections are refused at one time: each takes a goroutine, and
	// where its client holds that up a thread.
	maxDismissed = 64
	// maxLocks is how many ports a connection may have locked: those of one cluster.
	maxLocks = 256
	// maxThreads bounds how many sockets are opened or closed at one time. Each takes some 20 ms,
	// in which the kernel waits for its readers (synchronize_net), and a thread.
	maxThreads = 64
	// idleTimeout ends connections that have nothing and ask for nothing.
	idleTimeout = 10 * time.Second
	// replyTimeout ends connections that do not read what they asked for.
	replyTimeout = 5 * time.Second
	// socketMode lets anybody ask: what each may have is the rules', and who may have nothing is
	// told why.
	socketMode fs.FileMode = 0o666
)
