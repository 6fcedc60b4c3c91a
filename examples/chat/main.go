// Command chat is a chat room on a multicast group: each line is sent once and heard by all others.
//
//	go run ./examples/chat                                     three speakers in this process
//	go build ./examples/chat && rawlane run -n 3 ./chat        a process for each, on kernel links
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const (
	room     mcd.GroupID = 42
	port     mcd.PortID  = 2
	speakers             = 3
)

// lines are what nodes 0, 1 and 2 say, in turn.
var lines = [speakers]string{"Is anybody there?", "I am.", "So am I. Good night."}

func main() { start.Main(start.Config{Nodes: speakers, Exact: true, Limit: 10 * time.Second}, chat) }

const (
	pause = 20 * time.Millisecond  // between repetitions of a line
	stay  = 200 * time.Millisecond // after all lines were heard
)

// chat says its node's line once it has heard the one before, and leaves a little after it has
// heard all of them. Frames can be lost, and a node that joins late misses what was said before; so
// a node says its line again after each pause, until it leaves.
func chat(ctx context.Context, e *start.Node) error {
	if err := e.Join(room); err != nil {
		return err
	}
	p, err := e.OpenPort(port, mcd.PortOptions{})
	if err != nil {
		return err
	}
	self := e.Node()
	heard := map[mcd.NodeID]bool{self: true}
	buf := make([]byte, e.MaxPayload())
	for leave := (time.Time{}); leave.IsZero() || time.Now().Before(leave); {
		if self == 0 || heard[self-1] {
			if err := p.Multicast(ctx, room, port, []byte(lines[self])); err != nil {
				return err
			}
		}
		err := listen(ctx, p, buf, func(from mcd.NodeID, line string) {
			if !heard[from] {
				heard[from] = true
				fmt.Printf("node %d hears node %d: %s\n", self, from, line)
			}
		})
		if err != nil {
			return err
		}
		if leave.IsZero() && len(heard) == speakers {
			leave = time.Now().Add(stay)
		}
	}
	return nil
}

// listen calls hear for each line that arrives during a pause.
func listen(ctx context.Context, p *mcd.Port, buf []byte, hear func(from mcd.NodeID, line string)) error {
	patience, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	for {
		n, from, err := p.Recv(patience, buf)
		if patience.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		hear(from.Node, string(buf[:n]))
	}
}
