//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// asNode, and the node's number, is the first argument of a node's process; then come the number of
// senders and, to the receiver, the number of intervals, to a sender its key.
const asNode = "node:"

// headers is how much shorter than a message the data of a write is that fills one frame: the
// headers of a frame and of a put in docs/wire-format.md. The receiver checks it.
const headers = 20 + 22

func runNode(number string) error {
	if len(os.Args) != 4 {
		return fmt.Errorf("node %s: %d arguments", number, len(os.Args))
	}
	node, err1 := strconv.Atoi(number)
	count, err2 := strconv.Atoi(os.Args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	n, err := open(node, count)
	if err != nil {
		return fmt.Errorf("node %d: %w", node, err)
	}
	if node > 0 {
		return n.send(os.Args[3])
	}
	intervals, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	return n.receive(count, intervals)
}

type node struct {
	link   *ring.Link
	ep     *mcd.Endpoint
	domain *memfifo.Domain
}

// open opens all layers. What it opens ends with the process.
func open(number, senders int) (n node, err error) {
	if n.link, err = ring.Open(testbed.Interface(0), ring.Config{}); err != nil {
		return n, err
	}
	var nodes []mcd.Node
	for k := range senders + 1 {
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{testbed.MAC(k, 0)}})
	}
	cfg := mcd.Config{Cluster: 1, Node: mcd.NodeID(number), Nodes: nodes, Spin: -1} // cores are for those with work
	if n.ep, err = mcd.Open(cfg, n.link); err != nil {
		return n, err
	}
	n.domain, err = memfifo.Open(n.ep, memfifo.Config{})
	return n, err
}

// send writes full frames for ever, when its input has ended.
func (n *node) send(key string) error {
	k, err := memfifo.ParseKey(key)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	r, data := n.domain.Remote(k), make([]byte, n.ep.TrainPayload()-headers)
	for {
		if err := r.PutNotify(context.Background(), 0, data); err != nil {
			return err
		}
	}
}

// receive prints a key for each sender. When all have begun, it prints for each interval how many
// frames a second were put in place, and Jain's index; in the end, how many frames in all.
func (n *node) receive(senders, intervals int) error {
	windows := make([]*memfifo.Window, senders)
	for i := range windows {
		w, err := n.domain.Register(uint16(i+1), make([]byte, n.ep.MaxPayload()), memfifo.Write)
		if err != nil {
			return err
		}
		windows[i] = w
		fmt.Print(w.Key(), " ")
	}
	fmt.Println()
	for _, w := range windows {
		if _, err := w.Wait(context.Background(), 0); err != nil {
			return err
		}
	}
	time.Sleep(warmUp)
	began, counts := time.Now(), make([]uint64, senders)
	count(windows, counts)
	for range intervals {
		time.Sleep(time.Until(began.Add(interval)))
		now := time.Now()
		frames, fairness := count(windows, counts)
		fmt.Println(frames/now.Sub(began).Seconds(), fairness)
		began = now
	}
	var all uint64
	for _, c := range counts {
		all += c
	}
	fmt.Println(all)
	if bytes := n.link.Counters().RxBytes; all*frameLen > bytes {
		return fmt.Errorf("%d puts in %d bytes: they are not of %d bytes each", all, bytes, frameLen)
	}
	return nil
}

// count brings counts up to date. It returns how many puts are new, and how evenly they are shared.
func count(windows []*memfifo.Window, counts []uint64) (sum, fairness float64) {
	var squares float64
	for i, w := range windows {
		now := w.Notified()
		x := float64(now - counts[i])
		counts[i] = now
		sum += x
		squares += x * x
	}
	return sum, sum * sum / (float64(len(windows)) * max(squares, 1))
}
