// Package api is the manager's HTTP interface as Go types: the JSON objects of docs/manager-api.md,
// and the errors behind their codes.
//
// [Table], [Changed], [Counters], [Log], [History], [NIC], [About] and [Health] are answers.
// [SessionStart] begins a session, and [SessionEvent] is one line of the stream that answers it.
// [Error] is a refusal; it matches the sentinel of its code with errors.Is.
package api

import "time"

// Schema is the version of the JSON objects of this package. A version may gain fields; the meaning
// of a field does not change.
const Schema = 1

// Heartbeat is the longest interval between two events of a session: one that tells nothing new
// finds out whether the program is there, and shows it that the manager is.
const Heartbeat = 30 * time.Second

// Bounds on requests and answers.
const (
	// MaxBody bounds a request, in bytes. A plan of 4,096 named nodes takes less than 1 MiB, each
	// exception about 40 bytes.
	MaxBody = 8 << 20
	// MaxReason bounds the reason given for a change, in bytes.
	MaxReason = 1 << 10
	// MaxHistory bounds the settings that a manager can go back to.
	MaxHistory = 16
	// MaxLog bounds the changes that a manager's log lists.
	MaxLog = 256
	// MaxShown bounds the routes that an entry of the log lists.
	MaxShown = 64
)
