package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// conn is a program's connection, served by one goroutine. A connection is for one link.
type conn struct {
	server   *Server
	unix     *net.UnixConn
	who      *credentials
	stranger bool // no rule named its user when it connected, or got a link; changed under Server.mu

	warned     bool          // that its sockets outlive it; guarded by Server.mu
	hungUp     bool          // the client has, or the service does; guarded by Server.mu
	vacated    chan struct{} // closed once the interface of a link xdp may have another one
	at         *attachment   // of the link that was granted
	sockets    *sockets
	handedOver bool                 // the client has them
	memory     int64                // of the rings; guarded by Server.mu
	locks      map[portKey]portName // changed by this goroutine alone, under Server.mu
}

// portName is how a program names a port that it locks. Its interface may have another name when it
// unlocks the port.
type portName struct {
	ifname    string
	etherType transport.EtherType
	cluster   uint32
	port      uint8
}

func nameOf(r *protocol.Request) portName {
	return portName{r.Interface, r.EtherType, *r.Cluster, r.Port}
}

func (c *conn) serve() {
	defer c.close()
	b := make([]byte, protocol.MaxMessage+1)
	for {
		var deadline time.Time // none for a program that has something
		if c.sockets == nil && len(c.locks) == 0 {
			deadline = time.Now().Add(cmp.Or(c.server.cfg.idle, idleTimeout))
		}
		if err := c.unix.SetReadDeadline(deadline); err != nil {
			return
		}
		n, err := c.unix.Read(b)
		if err != nil {
			return
		}
		r, err := protocol.ParseRequest(b[:n])
		if err != nil {
			c.refuse(&protocol.RefusalError{Cause: protocol.Malformed, Text: "request: " + err.Error()})
			return
		}
		if !c.answer(r) {
			return
		}
	}
}

func (c *conn) close() {
	leave := c.server.hangUp(c) && c.handedOver
	if c.sockets != nil {
		c.server.threads <- struct{}{}
		if err := c.sockets.detach(leave); err != nil {
			c.server.log.Error("cannot undo a link", "pid", c.who.pid, "interface", c.at.Name, "err", err)
		}
		c.sockets.close()
		<-c.server.threads
		c.server.vacate(c)
	}
	_ = c.unix.Close() // it is over either way
	c.server.leave(c)
}

// answer carries out a request and replies. It reports whether the connection goes on: a program
// that was refused hangs up, or asks for something else.
func (c *conn) answer(r *protocol.Request) bool {
	switch r.Do {
	case protocol.Open:
		return c.open(r)
	case protocol.Lock:
		return c.lock(r)
	}
	c.unlock(r)
	return c.reply(&protocol.Reply{})
}

// open hands over the sockets of a link.
func (c *conn) open(r *protocol.Request) bool {
	if c.sockets != nil {
		return c.refuse(&protocol.RefusalError{
			Cause: protocol.Malformed, Text: "this connection has a link: it is for one",
		})
	}
	scopes, refusal := c.scopes(r)
	if refusal != nil {
		return c.refuse(refusal)
	}
	at, err := c.server.system.find(r.Interface)
	if err != nil {
		return c.refuse(failed(err))
	}
	bytes, err := at.bytes(r)
	if err != nil {
		return c.refuse(failed(err))
	}
	if refusal := c.server.reserve(c, bytes); refusal != nil {
		return c.refuse(refusal)
	}
	if refusal := c.make(at, r, scopes); refusal != nil {
		c.server.unreserve(c)
		return c.refuse(refusal)
	}
	defer c.sockets.closeDescriptors()
	c.handedOver = c.reply(&protocol.Reply{Open: at.opened(r, c.sockets)}, c.sockets.descriptors()...)
	c.server.granted.write(c.server.log, time.Now(), c, "granted", []any{
		"interface", at.Name, "ethertype", r.EtherType.String(), "cluster_ports", scopeText(scopes),
		"ring_bytes", bytes, "xdp", r.XDP, "user", c.server.nameOf(c.who.UID), // behind the reply: it may take seconds
	})
	return c.handedOver
}

// make makes the sockets.
func (c *conn) make(at *attachment, r *protocol.Request, scopes []rules.Scope) *protocol.RefusalError {
	if r.XDP {
		if refusal := c.server.occupy(c, at.Index); refusal != nil {
			return refusal
		}
	}
	c.server.threads <- struct{}{}
	made, err := c.server.system.open(at, r, scopes)
	<-c.server.threads
	if err != nil {
		c.server.vacate(c)
		return failed(err)
	}
	c.sockets, c.at = made, at
	return nil
}

func scopeText(scopes []rules.Scope) string {
	var texts []string
	for _, s := range scopes {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, " ")
}

// scopes returns what the rules allow of a request.
func (c *conn) scopes(r *protocol.Request) ([]rules.Scope, *protocol.RefusalError) {
	allowed, by := c.server.rules.Load(), fmt.Sprintf("EtherType %v", r.EtherType)
	all := allowed.Scopes(c.who.Peer, r.Interface, r.EtherType)
	if r.XDP {
		all, by = allowed.XDPScopes(c.who.Peer, r.Interface, r.EtherType), by+" and link xdp"
	}
	if len(all) == 0 {
		return nil, c.server.deny(c, r, r.Interface+" by "+by)
	}
	if r.Cluster == nil {
		return all, nil
	}
	narrow := rules.Narrow(all, *r.Cluster)
	if len(narrow) == 0 {
		return nil, c.server.deny(c, r, fmt.Sprintf("cluster %d on %s", *r.Cluster, r.Interface))
	}
	return narrow, nil
}

// lock hands over a port's name.
func (c *conn) lock(r *protocol.Request) bool {
	key, refusal := c.claim(r)
	if refusal != nil {
		return c.refuse(refusal)
	}
	fd, holder, err := c.server.system.lock(transport.PortLockName(key.segment, key.cluster, key.port))
	if holder == nil && err == nil {
		defer unix.Close(fd)
		return c.reply(&protocol.Reply{}, fd)
	}
	trusted := false
	if err == nil {
		trusted, err = c.server.trusts(holder, r)
	}
	switch {
	case err != nil:
		c.server.unclaim(c, key)
		return c.refuse(failed(err))
	case trusted:
		c.server.unclaim(c, key)
		// This service has given it away, or one that has ended: to a program that keeps it.
		if holder.pid == os.Getpid() || errors.Is(unix.Kill(holder.pid, 0), unix.ESRCH) {
			holder.pid = 0
		}
		return c.refuse(portLocked(holder))
	}
	c.warn("the name of a port is held by a user without the right to it: ignored",
		"holder_uid", holder.UID, "holder_pid", holder.pid,
		"interface", r.Interface, "cluster", key.cluster, "port", key.port)
	return c.reply(&protocol.Reply{})
}

// claim books a port for a connection, if its user has the right to it and nobody else has it.
func (c *conn) claim(r *protocol.Request) (key portKey, refusal *protocol.RefusalError) {
	if !c.server.allows(c.who.Peer, r) {
		return key, c.server.deny(c, r, fmt.Sprintf("port %d of cluster %d on %s", r.Port, *r.Cluster, r.Interface))
	}
	key, err := c.key(r)
	if err != nil {
		return key, failed(err)
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder := s.locks[key]; holder != nil {
		return key, portLocked(holder.who)
	}
	if len(c.locks) >= maxLocks {
		return key, &protocol.RefusalError{Cause: protocol.Limited, Text: fmt.Sprintf(
			"this link has %d ports locked, all that it may have", maxLocks)}
	}
	if c.locks == nil {
		c.locks = map[portKey]portName{}
	}
	s.locks[key], c.locks[key] = c, nameOf(r)
	return key, nil
}

func portLocked(holder *credentials) *protocol.RefusalError {
	return &protocol.RefusalError{Cause: protocol.PortLocked, Text: "another program has the port", PID: holder.pid}
}

// key names the port. The interface of the link that was granted may have another name by now.
func (c *conn) key(r *protocol.Request) (portKey, error) {
	at := c.at
	if at == nil || at.Name != r.Interface {
		var err error
		if at, err = c.server.system.find(r.Interface); err != nil {
			return portKey{}, err
		}
	}
	return portKey{at.Segment(r.EtherType), *r.Cluster, r.Port}, nil
}

func (c *conn) unlock(r *protocol.Request) {
	for key, name := range c.locks {
		if name == nameOf(r) {
			c.server.unclaim(c, key)
		}
	}
}

// reply sends an answer with descriptors. It reports whether the client can have got it.
func (c *conn) reply(r *protocol.Reply, fds ...int) bool {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if err := c.unix.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return false
	}
	_, _, err := c.unix.WriteMsgUnix(protocol.Append(nil, r), oob, nil)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.EPIPE) && !errors.Is(err, net.ErrClosed) {
		c.warn("cannot reply", "err", err)
	}
	return err == nil
}

func (c *conn) refuse(r *protocol.RefusalError) bool {
	c.warn("refused", "cause", string(r.Cause), "text", r.Text)
	return c.reply(&protocol.Reply{Error: r})
}

// warn writes a line that the program has caused, unless its user has caused too many.
func (c *conn) warn(message string, attributes ...any) {
	c.server.complaints.write(c.server.log, time.Now(), c, message, attributes)
}
