// Command pair is two machines, or more, on one Ethernet: node 0 writes to the memory of all
// others, and all wait for each other. It is a whole program, to copy: it reads a host file,
// finds its own line, meets the others, and passes a key to them.
//
//	pair hosts.txt                                        on each machine, with CAP_NET_RAW
//	go build ./examples/pair && rawlane run -n 2 ./pair   in namespaces of one machine
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/ring"
)

func main() {
	hostfile := os.Getenv("RAWLANE_HOSTFILE") // rawlane run -n sets it
	if len(os.Args) > 1 {
		hostfile = os.Args[1]
	}
	if hostfile == "" {
		log.Fatal("which nodes are there? Give a host file, as: pair hosts.txt")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, hostfile); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, hostfile string) error {
	file, err := cluster.ReadHostfile(hostfile)
	if err != nil {
		return err
	}
	self, err := cluster.Self(file.Hosts) // the line with an address or the name of this machine
	if err != nil {
		return err
	}
	link, err := ring.Open(self.NICs[0].Interface, ring.Config{})
	if err != nil {
		return err
	}
	ep, err := mcd.Open(mcd.Config{Cluster: 7, Node: self.Node, KeyFile: file.KeyFile}, link)
	if err != nil {
		return errors.Join(err, link.Close())
	}
	members, err := cluster.Join(ctx, ep, cluster.Config{Nodes: len(file.Hosts)}) // returns when all are there
	if err != nil {
		return errors.Join(err, ep.Close())
	}
	return errors.Join(work(ctx, ep), members.Close(), ep.Close())
}

// work is what each node does with the others.
func work(ctx context.Context, ep *mcd.Endpoint) error {
	barriers, err1 := barrier.Open(ep, barrier.Config{})
	domain, err2 := memfifo.Open(ep, memfifo.Config{})
	exchange, err3 := cluster.OpenExchanger(ep, cluster.ExchangerConfig{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	all, err := barriers.Group(barrier.GroupConfig{})
	if err != nil {
		return err
	}
	memory := make([]byte, 64)
	window, err := domain.Register(1, memory, memfifo.Write)
	if err != nil {
		return err
	}
	keys, err := exchange.Exchange(ctx, []byte(window.Key().String())) // each node gets every node's
	if err != nil {
		return err
	}
	if ep.Node() == 0 {
		for k, text := range keys {
			key, err := memfifo.ParseKey(string(text))
			if err == nil && k != 0 {
				err = domain.Remote(key).Put(ctx, 0, fmt.Appendf(nil, "hello, node %d", k))
			}
			if err != nil {
				return err
			}
		}
		if err := domain.Flush(ctx); err != nil { // the bytes are in place
			return err
		}
	}
	if err := all.Barrier(ctx); err != nil { // and all know it
		return err
	}
	if ep.Node() != 0 {
		fmt.Printf("node %d has in its memory: %s\n", ep.Node(), bytes.TrimRight(memory, "\x00"))
	}
	// No node leaves while another still uses its memory.
	return errors.Join(all.Barrier(ctx), exchange.Close(), domain.Close(), barriers.Close())
}
