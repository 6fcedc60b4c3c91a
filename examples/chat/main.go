// Command chat is a room that is a multicast group: what one says, all others hear, and it is sent once.
//
//	go run ./examples/chat                                          three speakers in this process
//	go build ./examples/chat && rawlane run -n 3 ./chat             a process for each, on kernel links
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/examples/internal/attach"
	"github.com/rawlane/rawlane/mcd"
)

const (
	room     mcd.GroupID = 42
	port     mcd.PortID  = 2
	speakers             = 3
)

// lines are said in turn: by node 0, node 1, node 2.
var lines = [speakers]string{"Is anybody there?", "I am.", "So am I. Good night."}

func main() { attach.Just(speakers, 10*time.Second, chat) }

const (
	pause = 20 * time.Millisecond  // before a line is said again
	stay  = 200 * time.Millisecond // after all was heard
)

// chat says its line when it has heard all before it, and leaves a little after it has heard all. Frames can be lost, and
// whoever joins late misses what was said: so a line is said again after a pause, until the speaker leaves.
func chat(ctx context.Context, e *mcd.Endpoint) error {
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

// listen passes on what is said during a pause.
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
