package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
)

// crowd bounds connections that anybody may make. One more than most has one closed: of the host
// with the most of them, that which has been there for longest. So a host that takes all places
// takes them from itself.
type crowd struct {
	most int

	mu  sync.Mutex
	all []*guest // the oldest first; guarded by mu
}

// guest is a connection in a crowd.
type guest struct {
	net.Conn
	host string
	// ctx ends when the guest has to go.
	ctx context.Context
	end context.CancelFunc
}

// errCrowded is the cause of a connection's end that made room for another one.
var errCrowded = errors.New("closed to make room for another connection")

func newGuest(ctx context.Context, c net.Conn) *guest {
	g := &guest{Conn: c, host: hostOf(c.RemoteAddr())}
	g.ctx, g.end = context.WithCancel(ctx)
	return g
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}

// add takes a guest in, and sends one away if they are too many: the new one never.
func (c *crowd) add(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, g)
	if len(c.all) <= c.most {
		return
	}
	of := make(map[string]int)
	for _, h := range c.all {
		of[h.host]++
	}
	victim := 0
	for i, h := range c.all[:len(c.all)-1] {
		if of[h.host] > of[c.all[victim].host] {
			victim = i
		}
	}
	away := c.all[victim]
	c.all = slices.Delete(c.all, victim, victim+1)
	away.end()
	_ = away.Close() // nobody waits for it
}

// remove takes a guest out, if it is there.
func (c *crowd) remove(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.all, g); i >= 0 {
		c.all = slices.Delete(c.all, i, i+1)
	}
}

// crowdListener serves everybody who can connect: its connections are a crowd.
type crowdListener struct {
	net.Listener
	crowd crowd
}

func newCrowdListener(l net.Listener, most int) *crowdListener {
	return &crowdListener{Listener: l, crowd: crowd{most: most}}
}

// Accept implements net.Listener. Its connections are of type *conn.
func (l *crowdListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := newGuest(context.Background(), c)
	l.crowd.add(g)
	return newConn(c, func() { l.crowd.remove(g); g.end() }), nil
}
