package mcd

import (
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/mcd/internal/auth"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/vlan"
)

// Contact frames to the endpoint's own address, which another machine has, too, go to all stations,
// by the route to all, and no more of them than a few, whoever causes them.
func TestContact_ToItsOwnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := linktest.Pipe()
		toAll, toOwn := transport.Tagged(transport.Tag{VID: 5}), transport.Tagged(transport.Tag{VID: 6})
		table, err := vlan.NewTable([]vlan.Route{
			{Dst: transport.Broadcast, OptionalTag: toAll},
			{Dst: x.MAC(), OptionalTag: toOwn},
		})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(Config{Spin: -1, Keys: keyring.New(), Router: table}, x)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		synctest.Wait()
		frames := make([]transport.Frame, 10*ownBurst)
		sent := func(dst transport.MAC) (sent int) {
			n, err := y.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			for i := range frames[:n] {
				if frames[i].Dst == dst {
					sent++
				}
				if frames[i].OptionalTag != toAll {
					t.Errorf("a frame to %v goes by %v, want %v", frames[i].Dst, frames[i].OptionalTag, toAll)
				}
			}
			return sent
		}
		sent(transport.Broadcast) // what Open has sent
		for !e.tryLockPoll() {
			synctest.Wait()
		}
		l := e.nics[0].auth
		l.out = make([]auth.Send, 3*ownBurst)
		for _, dst := range []transport.MAC{y.MAC(), e.MAC(0)} {
			for i := range l.out {
				l.out[i].Dst = dst
			}
			l.transmit(clock.Now(), nil)
			want, to := len(l.out), dst
			if dst == e.MAC(0) {
				want, to = ownBurst, transport.Broadcast
			}
			if got := sent(to); got != want {
				t.Errorf("to %v: %d of %d were sent to %v, want %d", dst, got, len(l.out), to, want)
			}
		}
		l.out = l.out[:0]
		e.unlockPoll()
	})
}
