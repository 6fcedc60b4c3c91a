package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// Server is a service on a Unix socket, for the network namespace in which it was opened.
type Server struct {
	cfg      Config
	log      *slog.Logger
	listener *unixsocket.Listener
	rules    atomic.Pointer[Rules]
	system   system
	served   sync.WaitGroup // the goroutines that Open and accept start
	threads  chan struct{}  // capacity maxThreads: who opens or closes sockets has put a token in
	look     chan struct{}  // capacity 1: a token tells sweep to look at once

	dismissed  chan struct{} // capacity maxDismissed: who is refused a connection has put a token in
	lookups    chan struct{} // capacity maxLookups: who looks a user up has put a token in
	complaints complaints    // of refusals
	granted    complaints    // of links that were granted, or released

	mu        sync.Mutex // guards what follows
	closed    bool
	conns     map[*conn]bool
	strangers int            // connections of users that no rule names
	left      map[*conn]bool // those that have hung up, and whose sockets may still be open
	sweeping  bool           // sweep runs
	users     map[uint32]*usage
	memory    int64 // of the rings of all users
	locks     map[portKey]*conn
	xdp       map[int]*conn // who has link xdp on an interface, by its index
}

// system is what the service asks of the kernel. Tests put it into other network namespaces.
type system interface {
	find(ifname string) (*attachment, error)
	open(a *attachment, r *protocol.Request, scopes []rules.Scope) (*sockets, error)
	lock(name string) (fd int, holder *credentials, err error)
	living() (map[uint64]bool, error) // the packet sockets, by their inodes
	// name is a user's. It may take seconds, where another host knows it: it is not to be called
	// with a lock, or where connections are accepted.
	name(uid uint32) string
	// groups are a user's, the primary one among them. It may take as long.
	groups(uid uint32) ([]uint32, error)
}

// usage is what a user has at the moment.
type usage struct {
	links  int
	memory int64
}

// portKey is a port, as programs of one segment compete for it.
type portKey struct {
	segment string
	cluster uint32
	port    uint8
}

// Open listens on a Unix socket that anybody may connect to, and serves until Close.
func Open(socket string, cfg Config) (*Server, error) { return open(socket, cfg, kernel{}) }

func open(socket string, cfg Config, sys system) (*Server, error) {
	s := &Server{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.Default()), system: sys,
		threads: make(chan struct{}, maxThreads), look: make(chan struct{}, 1),
		dismissed:  make(chan struct{}, maxDismissed),
		lookups:    make(chan struct{}, maxLookups),
		complaints: complaints{level: slog.LevelWarn, most: maxComplaints, what: "refused"},
		granted:    complaints{level: slog.LevelInfo, most: maxGrants, what: "granted and released"},
		conns:      map[*conn]bool{}, left: map[*conn]bool{}, users: map[uint32]*usage{}, locks: map[portKey]*conn{},
		xdp: map[int]*conn{},
	}
	if err := s.Reload(); err != nil {
		return nil, fmt.Errorf("grant: %w", err)
	}
	l, err := unixsocket.Listen("unixpacket", socket, socketMode)
	if err != nil {
		return nil, fmt.Errorf("grant: listen on %s: %w", socket, err)
	}
	s.listener = l
	s.served.Go(s.accept) // until Close closes the listener
	return s, nil
}

// Reload reads the rules anew. If they are wrong the old ones stay. What was granted stays.
func (s *Server) Reload() error {
	r, err := ReadRules(s.cfg.Rules)
	if err == nil {
		s.rules.Store(r)
	}
	return err
}

// Close ends the connections. The programs keep their sockets.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for c := range s.conns {
		_ = c.unix.Close() // ends its goroutine
	}
	s.mu.Unlock()
	s.lookNow()
	err := s.listener.Close()
	s.served.Wait()
	s.complaints.close(s.log)
	s.granted.close(s.log)
	return err
}

// acceptPause is how long the service waits after it could not accept: without descriptors the next
// try would fail at once.
const acceptPause = 100 * time.Millisecond

func (s *Server) accept() {
	for {
		u, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Error("cannot accept a connection", "err", err)
			time.Sleep(acceptPause)
			continue
		}
		s.admit(u)
	}
}

// admit starts to serve a connection, if its user may have one more.
func (s *Server) admit(u *net.UnixConn) {
	who, err := peer(u)
	if err != nil {
		s.log.Error("cannot tell who connects", "err", err)
		_ = u.Close()
		return
	}
	c := &conn{server: s, unix: u, who: who}
	if refusal := s.register(c); refusal != nil {
		s.dismiss(c, refusal)
		return
	}
	s.served.Go(c.serve) // until the client hangs up, or Close does
}

// dismiss refuses a connection, aside: a descriptor that the client has sent is closed with it,
// which takes as long as the client likes where the kernel lets it send one (unixsocket.Listen).
func (s *Server) dismiss(c *conn, refusal *protocol.RefusalError) {
	s.dismissed <- struct{}{}
	s.served.Go(func() { // until the connection is closed
		c.refuse(refusal)
		_ = c.unix.Close() // the client has the reply
		<-s.dismissed
	})
}

func (s *Server) register(c *conn) *protocol.RefusalError {
	r := s.rules.Load()
	limit, stranger := r.Limit(c.who.Peer), !r.Names(c.who.Peer)
	c.stranger = stranger
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[c.who.UID]
	switch {
	case s.closed:
		return &protocol.RefusalError{Cause: protocol.Failed, Text: "the service is ending"}
	case !stranger && s.isFull(r):
		return s.full(r)
	case stranger && s.strangers >= maxStrangers:
		return &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
			"the service has %d connections of users whom no line of %s names, all that it takes",
			maxStrangers, s.cfg.Rules)}
	case u != nil && u.links >= limit.Links, limit.Links == 0:
		name := r.UserName(c.who.UID)
		return &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
			"user %s has %d links, all that it may have (raise it in %s: limit user %s links %d memory %d)",
			name, limit.Links, s.cfg.Rules, name, max(1, 2*limit.Links), limit.Memory)}
	}
	if u == nil {
		u = &usage{}
		s.users[c.who.UID] = u
	}
	if stranger {
		s.strangers++
	}
	u.links++
	s.conns[c] = true
	return nil
}

// isFull reports whether users that a rule names have all connections. Those of others do not
// count: they bring no link, and are bounded by themselves. The caller holds mu.
func (s *Server) isFull(r *Rules) bool { return len(s.conns)-s.strangers >= mostConns(r) }

func mostConns(r *Rules) int { return min(maxConns, r.Total().Links) }

func (s *Server) full(r *Rules) *protocol.RefusalError {
	total, help := r.Total(), "no line gives more"
	if total.Links < maxConns {
		help = fmt.Sprintf("raise it in %s: limit total links %d memory %d",
			s.cfg.Rules, min(max(1, 2*total.Links), maxConns), total.Memory)
	}
	return &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
		"the service has %d connections, all that it takes (%s)", mostConns(r), help)}
}

// recognise counts a connection as one of a user that a rule names, where the rules do so only
// since it was admitted. The caller holds mu.
func (s *Server) recognise(c *conn, r *Rules) *protocol.RefusalError {
	switch {
	case !c.stranger || !r.Names(c.who.Peer):
		return nil
	case s.isFull(r):
		return s.full(r)
	}
	c.stranger = false
	s.strangers--
	return nil
}

// reserve books a ring for a user.
func (s *Server) reserve(c *conn, bytes int64) *protocol.RefusalError {
	r := s.rules.Load()
	limit, total := r.Limit(c.who.Peer), r.Total()
	s.mu.Lock()
	defer s.mu.Unlock()
	if refusal := s.recognise(c, r); refusal != nil {
		return refusal
	}
	u := s.users[c.who.UID]
	if u.memory+bytes > limit.Memory {
		name := r.UserName(c.who.UID)
		return &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
			"user %s has rings of %d bytes, and with %d more would have over %d "+
				"(ask for fewer slots, or raise it in %s: limit user %s links %d memory %d)",
			name, u.memory, bytes, limit.Memory,
			s.cfg.Rules, name, limit.Links, u.memory+bytes)}
	}
	if s.memory+bytes > total.Memory {
		return &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
			"the rings of all users have %d bytes, and with %d more would have over %d "+
				"(ask for fewer slots, or raise it in %s: limit total links %d memory %d)",
			s.memory, bytes, total.Memory, s.cfg.Rules, total.Links, s.memory+bytes)}
	}
	u.memory += bytes
	c.memory += bytes
	s.memory += bytes
	return nil
}

// hangUp notes that a connection is over, and reports whether that is because the service ends. Its
// ports are free at once, for the program that is started anew; its sockets take longer to close.
func (s *Server) hangUp(c *conn) (ending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.hungUp = true
	for key := range c.locks {
		delete(s.locks, key)
	}
	clear(c.locks)
	return s.closed
}

// maxLookups is how many users are looked up at once: each takes a thread, and seconds where
// another host knows it. A service has so many threads as the system lets it have, and ends past
// that.
const maxLookups = 16

// nameOf returns a user's name, or the number where too many are looked up.
func (s *Server) nameOf(uid uint32) string {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
		return s.system.name(uid)
	default:
		return strconv.FormatUint(uint64(uid), 10)
	}
}

// release forgets a connection. The caller holds mu.
func (s *Server) release(c *conn) {
	u := s.users[c.who.UID]
	u.links--
	u.memory -= c.memory
	s.memory -= c.memory
	if u.links == 0 {
		delete(s.users, c.who.UID)
	}
	if c.stranger {
		s.strangers--
	}
	delete(s.conns, c)
}

// kernel is the system in this process's network namespace.
type kernel struct{}

func (kernel) find(ifname string) (*attachment, error) { return findInterface(ifname) }

func (kernel) open(a *attachment, r *protocol.Request, scopes []rules.Scope) (*sockets, error) {
	return a.open(r, scopes)
}

func (kernel) living() (map[uint64]bool, error) { return livingSockets() }

func (kernel) lock(name string) (int, *credentials, error) { return lockName(name) }

func (kernel) name(uid uint32) string { return userName(uid) }

func (kernel) groups(uid uint32) ([]uint32, error) { return userGroups(uid) }

// deny says what would have to be in the rules: as little as allows the request.
func (s *Server) deny(c *conn, r *protocol.Request, what string) *protocol.RefusalError {
	if err := rules.CheckEtherType(r.EtherType); err != nil {
		return &protocol.RefusalError{Cause: protocol.Denied, Text: fmt.Sprintf(
			"EtherType %v: no rule can allow it: %v", r.EtherType, err)}
	}
	rules := s.rules.Load()
	name := s.nameOf(c.who.UID)
	cluster, port := "any", "any"
	if r.Cluster != nil {
		cluster = strconv.FormatUint(uint64(*r.Cluster), 10)
	}
	if r.Do == protocol.Lock {
		port = strconv.Itoa(int(r.Port))
	}
	text := fmt.Sprintf("user %s (uid %d) may not use %s: no line of %s allows it "+
		"(add to it: allow user %s interface %s cluster %s ports %s",
		name, c.who.UID, what, rules.Name, name, r.Interface, cluster, port)
	if r.EtherType != transport.EtherTypeDefault {
		text += fmt.Sprintf(" ethertype %v", r.EtherType)
	}
	if r.XDP {
		text += " xdp yes"
	}
	text += ", and tell the service: systemctl reload rawlane-grant, or SIGHUP to one that was started by hand"
	if groups := rules.GroupsOn(r.Interface, r.EtherType, r.XDP); len(groups) > 0 {
		text += fmt.Sprintf("; or join group %s: usermod -aG %s %s", groups[0], groups[0], name)
	}
	return &protocol.RefusalError{Cause: protocol.Denied, Text: text + ")"}
}

// failed is the refusal of what the system has refused.
func failed(err error) *protocol.RefusalError {
	var taken *xsk.OccupiedError
	if errors.As(err, &taken) {
		return occupied(taken)
	}
	text := err.Error()
	switch {
	case errors.Is(err, afxdp.ErrRights):
		text = strings.TrimSuffix(text, afxdp.ErrRights.Error()) + "operation not permitted (the service itself " +
			"lacks CAP_NET_ADMIN or CAP_BPF: AmbientCapabilities in its unit; or use link ring)"
	case errors.Is(err, unix.ENOBUFS):
		text += " (of the service: LimitMEMLOCK=infinity in its unit)"
	case errors.Is(err, os.ErrPermission):
		text += " (the service itself lacks CAP_NET_RAW: AmbientCapabilities in its unit)"
	}
	return &protocol.RefusalError{Cause: cause(err), Text: text}
}
