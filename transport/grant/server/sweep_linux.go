package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sockets of programs that have hung up.
//
// A program can hang up and keep its sockets, or another one can that was given them. They count on
// as the user's links, and their rings as its memory, until the last descriptor of both is closed:
// else a user could have any number. The kernel lists packet sockets by their inodes.

// Pauses between two looks at the kernel's list.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// leave gives back what a connection had that has ended, when its sockets are closed.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.sockets == nil {
		s.release(c)
		return
	}
	s.left[c] = true
	if !s.sweeping {
		s.sweeping = true
		s.served.Go(s.sweep) // until all sockets in left are closed, or Close
	}
	s.lookNow()
}

func (s *Server) lookNow() {
	select {
	case s.look <- struct{}{}:
	default: // it will look
	}
}

// sweep looks which sockets are still open until none is.
func (s *Server) sweep() {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		timer := time.NewTimer(pause)
		select {
		case <-s.look:
			pause = firstPause
		case <-timer.C:
		}
		timer.Stop()
		if s.sweepOnce(pause == lastPause) {
			return
		}
	}
}

// sweepOnce releases the connections whose sockets are closed, and reports whether none is left. It
// looks at those alone that were there before it read the kernel's list, which has no newer ones.
func (s *Server) sweepOnce(warn bool) (done bool) {
	s.mu.Lock()
	var candidates []*conn
	for c := range s.left {
		candidates = append(candidates, c)
	}
	s.mu.Unlock()
	living, err := s.system.living()
	if err != nil {
		s.log.Error("cannot tell which sockets are still open: they count no more", "err", err)
	}
	inXDP := map[*conn]bool{}
	for _, c := range candidates {
		inXDP[c] = c.sockets.hasXDP()
	}
	released, kept, done := s.sort(candidates, func(c *conn) bool {
		return inXDP[c] || slices.ContainsFunc(c.sockets.inodes, func(i uint64) bool { return living[i] })
	}, warn)
	for _, c := range released { // without the lock: a journal may be slow
		s.granted.write(s.log, time.Now(), c, "released", []any{"interface", c.at.Name})
	}
	for _, c := range kept {
		s.log.Warn("the program has hung up, and its sockets are still open: they count on",
			"uid", c.who.UID, "pid", c.who.pid, "interface", c.at.Name)
	}
	return done
}

// sort releases the candidates whose sockets are not open, and returns them, those of the others of
// which is to be warned, and whether none is left.
func (s *Server) sort(candidates []*conn, open func(*conn) bool, warn bool) (released, kept []*conn, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range candidates {
		switch {
		case !open(c) || s.closed:
			released = append(released, c)
			delete(s.left, c)
			s.release(c)
			c.sockets.forget()
		case warn && !c.warned:
			c.warned = true
			kept = append(kept, c)
		}
	}
	s.sweeping = len(s.left) > 0
	return released, kept, !s.sweeping
}

// inodeColumn is that of the inode in /proc/net/packet.
const inodeColumn = 8

// livingSockets returns the inodes of the packet sockets in this thread's network namespace. It
// reads the list twice: from one reading a socket is missing if others were closed between two of
// its system calls, as the kernel goes on by a line's number.
func livingSockets() (map[uint64]bool, error) {
	living := map[uint64]bool{}
	for range 2 {
		text, err := readSockets()
		if err != nil {
			return nil, err
		}
		if err := addInodes(living, text); err != nil {
			return nil, err
		}
	}
	return living, nil
}

// readSockets reads the kernel's list of packet sockets by as few system calls as can be: each has
// a page of it, which are some 60 sockets, and misses none of these.
func readSockets() (string, error) {
	f, err := os.Open("/proc/thread-self/net/packet")
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text []byte
	for b := make([]byte, listBuffer); ; {
		n, err := f.Read(b)
		text = append(text, b[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return string(text), nil
		case err != nil:
			return "", err
		}
	}
}

// listBuffer is more than what the kernel gives at once.
const listBuffer = 1 << 16

func addInodes(living map[uint64]bool, text string) error {
	first := true
	for line := range strings.Lines(text) {
		if first { // the columns' names
			first = false
			continue
		}
		columns := strings.Fields(line)
		if len(columns) <= inodeColumn {
			return fmt.Errorf("/proc/net/packet: %q: want %d columns", line, inodeColumn+1)
		}
		inode, err := strconv.ParseUint(columns[inodeColumn], 10, 64)
		if err != nil {
			return fmt.Errorf("/proc/net/packet: %q: %w", line, err)
		}
		living[inode] = true
	}
	return nil
}
