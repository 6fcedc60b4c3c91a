package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// complaints bounds the journal's lines that programs cause: by being refused, as anybody may
// connect, or by opening and closing links. They could fill the disk with them, or have the journal
// drop others' lines.
//
// A user has so many in a complaintWindow; users that no rule names have them together, as have
// those beyond maxComplainers. What is left out is counted, and the number is told.
type complaints struct {
	level slog.Level
	most  int
	what  string // that lines tell of
	mu    sync.Mutex
	all   map[uint32]*complainer // by user; guarded by mu
}

type complainer struct {
	since  time.Time // the window's beginning
	lines  int       // in the window
	silent int       // left out since they were told last
}

const (
	maxComplaints   = 20  // of refusals
	maxGrants       = 200 // lines of links that were granted, and released
	complaintWindow = time.Minute
	maxComplainers  = 64
	// together is the key of users that share their lines: (uid_t) -1 is no user.
	together = ^uint32(0)
)

// write writes a line of a connection's, or counts it.
func (x *complaints) write(log *slog.Logger, now time.Time, c *conn, message string, attributes []any) {
	key := c.who.UID
	if c.stranger {
		key = together
	}
	ok, silent := x.take(now, key)
	if !ok {
		return
	}
	attributes = append([]any{"uid", c.who.UID, "pid", c.who.pid}, attributes...)
	if silent > 0 {
		attributes = append(attributes, "not_logged", silent)
	}
	log.Log(context.Background(), x.level, message, attributes...)
}

// take reports whether a line may be written, and how many were not before it.
func (x *complaints) take(now time.Time, key uint32) (ok bool, silent int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	who := x.find(now, key)
	if now.Sub(who.since) >= complaintWindow {
		who.since, who.lines = now, 0
	}
	if who.lines >= x.most {
		who.silent++
		return false, 0
	}
	who.lines++
	silent, who.silent = who.silent, 0
	return true, silent
}

// find returns a user's lines, or those that are shared. It forgets users that have been quiet. The
// caller holds mu.
func (x *complaints) find(now time.Time, key uint32) *complainer {
	if x.all == nil {
		x.all = map[uint32]*complainer{together: {}}
	}
	if who := x.all[key]; who != nil {
		return who
	}
	if len(x.all) > maxComplainers {
		for uid, who := range x.all {
			if uid != together && now.Sub(who.since) >= complaintWindow {
				x.all[together].silent += who.silent
				delete(x.all, uid)
			}
		}
	}
	if len(x.all) > maxComplainers {
		return x.all[together]
	}
	who := &complainer{since: now}
	x.all[key] = who
	return who
}

// close tells of the lines that were left out.
func (x *complaints) close(log *slog.Logger) {
	x.mu.Lock()
	defer x.mu.Unlock()
	silent := 0
	for _, who := range x.all {
		silent += who.silent
		who.silent = 0
	}
	if silent > 0 {
		log.Log(context.Background(), x.level, "more was "+x.what, "not_logged", silent)
	}
}
