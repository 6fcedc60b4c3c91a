// Command hello sends a greeting from node 0 to node 1, and an answer back.
//
//	go run ./examples/hello                                    both nodes in this process
//	go build ./examples/hello && rawlane run -n 2 ./hello      a process for each, on kernel links
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/mcd"
)

const port mcd.PortID = 1

func main() { start.Main(start.Config{Nodes: 2, Exact: true, Limit: 10 * time.Second}, hello) }

// hello is each node's part, in one process or in two.
func hello(ctx context.Context, e *start.Node) error {
	p, err := e.OpenPort(port, mcd.PortOptions{})
	if err != nil {
		return err
	}
	buf := make([]byte, e.MaxPayload())
	if e.Node() == 1 {
		return answer(ctx, p, buf)
	}
	// A message to a port that is not open yet is dropped: send until the answer comes.
	for {
		if err := p.Send(ctx, mcd.Addr{Node: 1, Port: port}, []byte("hello, node 1")); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		n, from, err := p.Recv(patience, buf)
		cancel()
		if err == nil {
			fmt.Printf("node 0 received %q from %v\n", buf[:n], from)
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// stay is how long node 1 waits for another greeting: node 0 sends one if the answer was lost.
const stay = 500 * time.Millisecond

// answer answers greetings, until no more of them come.
func answer(ctx context.Context, p *mcd.Port, buf []byte) error {
	n, from, err := p.Recv(ctx, buf)
	if err != nil {
		return err
	}
	fmt.Printf("node 1 received %q from %v\n", buf[:n], from)
	for {
		if err := p.Send(ctx, from, []byte("hello, node 0")); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, stay)
		_, _, err := p.Recv(patience, buf)
		cancel()
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
