package rawnet_test

import (
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/standstill/standstilltest"
	"github.com/rawlane/rawlane/rawnet"
)

// A machine that stands still while it dials does not take that for a node that does not answer.
func TestDial_StandstillIsNoSilence(t *testing.T) {
	c := open(t, options{cfg: rawnet.Config{PeerTimeout: 500 * time.Millisecond}})
	l, err := c.nets[1].Listen("late")
	must(t, err)
	defer l.Close()
	conn, err := c.nets[0].Dial("rawlane", "1:late") // each knows the other
	must(t, err)
	must(t, conn.Close())

	c.faults[1].Cut(true) // until a while after the standstill
	dialed := make(chan error, 1)
	go func() {
		conn, err := c.nets[0].Dial("rawlane", "1:late")
		if err == nil {
			err = conn.Close()
		}
		dialed <- err
	}()
	time.Sleep(20 * time.Millisecond)
	standstilltest.Stand(t)
	time.Sleep(50 * time.Millisecond)
	c.faults[1].Cut(false)
	if err := <-dialed; err != nil {
		t.Error(err)
	}
}
