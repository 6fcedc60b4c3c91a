// Command netrpc is net/rpc's server and client, unchanged but for their listener and dialer.
//
//	go run ./examples/netrpc                                  both nodes in this process
//	go build ./examples/netrpc && rawlane run -n 2 ./netrpc   a process for each, on kernel links
//
// Package bothways starts both ends and compares them: begin a program of your own with
// examples/web.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"

	"github.com/rawlane/rawlane/examples/bothways"
)

func main() { bothways.Main(time.Minute, serve, ask(bothways.Rounds)) }

// Arith is what the server offers.
type Arith struct{}

// Numbers are an argument.
type Numbers struct{ A, B int }

// Divide is a method as net/rpc wants it.
func (Arith) Divide(n *Numbers, quotient *int) error {
	if n.B == 0 {
		return errors.New("divide by zero")
	}
	*quotient = n.A / n.B
	return nil
}

func serve(listen bothways.Listen) (stop func(), err error) {
	l, err := listen("arith")
	if err != nil {
		return nil, err
	}
	server := rpc.NewServer()
	if err := server.Register(Arith{}); err != nil {
		return nil, err
	}
	bothways.Serving("rpc", func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go server.ServeConn(c) // until the client closes
		}
	})
	return func() { _ = l.Close() }, nil
}

func ask(rounds int) func(context.Context, bothways.Way) error {
	return func(ctx context.Context, w bothways.Way) error {
		c, err := w.Dial(ctx, "tcp", w.Addr("arith"))
		if err != nil {
			return err
		}
		client := rpc.NewClient(c)
		defer func() { _ = client.Close() }()
		switch err := client.Call("Arith.Divide", &Numbers{1, 0}, new(int)); {
		case err == nil:
			return errors.New("1 by 0 is a number")
		case err.Error() != "divide by zero":
			return fmt.Errorf("1 by 0: %w", err)
		}
		k := 0
		return w.Latency("net/rpc", rounds, func() error {
			k++
			var quotient int
			err := client.Call("Arith.Divide", &Numbers{7 * k, 7}, &quotient)
			if err == nil && quotient != k {
				return fmt.Errorf("%d by 7 is %d", 7*k, quotient)
			}
			return err
		})
	}
}
