package memfifo

import (
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
	"github.com/rawlane/rawlane/transport"
)

// A frame of a node that the table does not have costs as much with a table of a thousand nodes as
// with one of two.
func TestReceive_WhatStrangersCost(t *testing.T) {
	const stranger = 5000
	e := mcdtest.Open(t, 2, mcdtest.Config{})[0]
	d, err := Open(e, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	hello := make([]byte, reliable.HeaderLen)
	hello[0], hello[7] = reliable.Version<<4|byte(reliable.Hello), 1
	frames := 0
	cost := func() float64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return testing.AllocsPerRun(10, func() {
			frames++
			d.handle(&mcd.Message{From: mcd.Addr{Node: stranger, Port: DefaultPort}, Payload: hello})
		})
	}
	few := cost()
	nodes := e.Nodes()
	for id := len(nodes); id < 1000; id++ {
		mac := transport.MAC{2, 0xee, 0, 0, byte(id >> 8), byte(id)}
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(id), MACs: []transport.MAC{mac}})
	}
	if err := e.SetNodes(nodes); err != nil {
		t.Fatal(err)
	}
	if many := cost(); many > few+100 { // what else runs may allocate, too
		t.Errorf("%v allocations with a thousand nodes, and %v with two", many, few)
	}
	if n := d.Counters().UnknownNode; n != uint64(frames) {
		t.Errorf("%d frames of nobody were counted, want %d", n, frames)
	}
}
