package server

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Locks on ports.
//
// The service remembers who has which port. It also takes the name under which programs with
// CAP_NET_RAW of their own lock a port (mcd.OpenPort), and hands that on: so both exclude each
// other, and a service that was started anew finds the port taken.
//
// Anybody can take such a name. The kernel tells who listens there (SO_PEERCRED): one that has the
// right to the port counts; root and this service do; a stranger does not.

// lockTries bounds how often a name is tried that is free when its holder is asked for, and taken
// otherwise: a stranger who takes it and gives it up in turn must not keep anybody from the port.
const lockTries = 100

// lockName takes the name of an abstract Unix socket. If it is taken, holder is who listens there.
func lockName(name string) (fd int, holder *credentials, err error) {
	addr := &unix.SockaddrUnix{Name: "@" + name}
	for range lockTries {
		if fd, err = listenAt(addr); err == nil {
			return fd, nil, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return -1, nil, fmt.Errorf("lock: %w", err)
		}
		if holder, err = listener(addr); !errors.Is(err, errNoOwner) {
			break
		}
	}
	return -1, holder, err
}

func listenAt(addr *unix.SockaddrUnix) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, addr); err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		_ = unix.Close(fd) // the first error counts
		return -1, err
	}
	return fd, nil
}

// listener returns who has the name: by a connection, or, if its owner has not begun to listen or
// has as many connections as it may, by the socket's owner, without its process and groups (nil).
func listener(addr *unix.SockaddrUnix) (*credentials, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	defer unix.Close(fd)
	if unix.Connect(fd, addr) == nil {
		return socketCredentials(fd)
	}
	uid, err := socketOwner(addr.Name)
	if err != nil {
		return nil, fmt.Errorf("lock: who has the name: %w", err)
	}
	return &credentials{Peer: rules.Peer{UID: uid}}, nil
}

// trusts reports whether the holder of a port's name has the right to it. Where the kernel did not
// tell its groups, those of its user count, if a rule is for a group: to look them up may take
// seconds.
func (s *Server) trusts(holder *credentials, r *protocol.Request) (bool, error) {
	who := holder.Peer
	if who.UID == 0 || who.UID == uint32(os.Geteuid()) || s.allows(who, r) {
		return true, nil
	}
	if who.Groups != nil || len(s.rules.Load().GroupsOn(r.Interface, r.EtherType, false)) == 0 {
		return false, nil
	}
	s.lookups <- struct{}{}
	defer func() { <-s.lookups }()
	groups, err := s.system.groups(who.UID)
	if err != nil {
		return false, fmt.Errorf("lock: groups of user %d, who has the name: %w", who.UID, err)
	}
	who.Groups = groups
	return s.allows(who, r), nil
}

// allows reports whether the rules give a port to a program.
func (s *Server) allows(p rules.Peer, r *protocol.Request) bool {
	return slices.ContainsFunc(s.rules.Load().Scopes(p, r.Interface, r.EtherType), func(sc rules.Scope) bool {
		return sc.Has(*r.Cluster, r.Port)
	})
}

// unclaim gives a port back.
func (s *Server) unclaim(c *conn, key portKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[key] == c {
		delete(s.locks, key)
		delete(c.locks, key)
	}
}

// unreserve undoes reserve.
func (s *Server) unreserve(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[c.who.UID].memory -= c.memory
	s.memory -= c.memory
	c.memory = 0
}
