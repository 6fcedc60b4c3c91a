package ether

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// conversation is a sender with as much to send as it likes, and what it sent.
type conversation struct {
	t *testing.T
	sender
}

func newConversation(t *testing.T, segments int) *conversation {
	c := &conversation{t, newSender(segments*Payload, NewReno)}
	c.unsent = 1 << 40
	return c
}

// window has the conversation begin with cwnd and ssthresh of so many segments.
func (c *conversation) window(segments int) {
	c.control = newController(NewReno, &congestion.Config{
		InitialWindow: segments, InitialSSThresh: segments, LossWindow: 1, MinWindow: 2, MaxWindow: c.limit, SlowStartLimit: ackEvery,
	})
}

// sends takes what may be sent, and checks which segments these are: "0-2 7".
func (c *conversation) sends(want string) {
	c.t.Helper()
	var got []string
	for first, last := int64(-1), int64(-1); ; {
		seq, _, _, ok := c.next()
		if ok && int64(seq) == last+1 && first >= 0 {
			last++
			continue
		}
		if first >= 0 && first < last {
			got = append(got, fmt.Sprintf("%d-%d", first, last))
		} else if first >= 0 {
			got = append(got, fmt.Sprint(first))
		}
		if !ok {
			break
		}
		first, last = int64(seq), int64(seq)
	}
	if s := strings.Join(got, " "); s != want {
		c.t.Errorf("sends %q, want %q (window %d, threshold %d, %d lost, %d arrived)", s, want, c.control.Window(), c.control.SlowStartThreshold(), c.lost, c.sacked)
	}
}

// ack acknowledges all below seq, and the run [lo, hi) above it.
func (c *conversation) ack(seq, lo, hi uint64) {
	c.onAck(&frame{ack: true, seq: seq, lo: lo, hi: hi}, monotime.At(time.Millisecond))
}

func TestSender_SlowStartDoublesTheWindow(t *testing.T) {
	c := newConversation(t, 100)
	c.sends("0-2")
	for _, want := range []int{6, 12, 24, 48, 96, 100} { // the most there may be
		for end := c.nxt; c.una < end; {
			c.ack(min(c.una+ackEvery, end), 0, 0)
			for _, _, _, ok := c.next(); ok; {
				_, _, _, ok = c.next()
			}
		}
		if c.inFlight() != want {
			t.Errorf("%d on their way after a round trip, want %d", c.inFlight(), want)
		}
	}
}

func TestSender_AvoidsCongestionByOneARoundTrip(t *testing.T) {
	c := newConversation(t, 100)
	c.window(10)
	c.sends("0-9")
	c.ack(5, 0, 0)
	c.sends("10-14")
	c.ack(10, 0, 0)
	c.sends("15-20") // one more
	c.ack(21, 0, 0)
	c.sends("21-32") // and one more
}

func TestSender_ThatDoesNotFillItsWindowKeepsIt(t *testing.T) {
	c := newConversation(t, 100)
	c.unsent = 2 * Payload
	c.sends("0-1")
	c.ack(2, 0, 0)
	if c.control.Window() != initialWindow {
		t.Errorf("window %d, want %d", c.control.Window(), initialWindow)
	}
}

func TestSender_SendsAgainWhatThreeHaveOvertaken(t *testing.T) {
	c := newConversation(t, 100)
	c.window(10)
	c.sends("0-9")
	c.ack(2, 0, 0)
	c.sends("10-11")
	c.ack(2, 3, 4) // 2 is missing
	c.sends("12")
	c.ack(2, 3, 5)
	c.sends("13")
	c.ack(2, 3, 6) // three are beyond it: half the window from now on, with 6-13 on their way
	if c.control.Phase() != congestion.FastRecovery || c.control.Window() != 5 || c.lost != 1 {
		t.Errorf("trouble %d, window %d, %d lost; want recovering, 5, 1", c.control.Phase(), c.control.Window(), c.lost)
	}
	c.sends("")
	c.ack(2, 3, 9)
	c.sends("")
	c.ack(2, 3, 10) // 10-13 are on their way: one may go
	c.sends("2")
	c.ack(10, 0, 0)
	c.sends("14")
	c.ack(14, 0, 0)
	if c.control.Phase() != congestion.Open || c.control.Window() != 5 || c.retransmitted != 1 {
		t.Errorf("trouble %d, window %d, %d resent; want none, 5, 1", c.control.Phase(), c.control.Window(), c.retransmitted)
	}
	c.sends("15-18")
}

// With CUBIC a loss leaves 0.8 of the window, and it takes three round trips for one segment more.
func TestSender_Cubic(t *testing.T) {
	c := newConversation(t, 100)
	c.control = newController(Cubic, &congestion.Config{
		InitialWindow: 10, InitialSSThresh: 10, LossWindow: 1, MinWindow: 2, MaxWindow: c.limit, SlowStartLimit: ackEvery,
	})
	c.sends("0-9")
	c.ack(0, 1, 10) // 0 is missing
	if c.control.Phase() != congestion.FastRecovery || c.control.Window() != 7 {
		t.Errorf("phase %d, window %d; want recovering, 7", c.control.Phase(), c.control.Window())
	}
	c.sends("0 10-15")
	c.ack(16, 0, 0)
	c.sends("16-22")
	c.ack(23, 0, 0)
	c.sends("23-30") // one more
	c.ack(31, 0, 0)
	c.sends("31-38")
	c.ack(39, 0, 0)
	c.sends("39-46")
	c.ack(47, 0, 0)
	c.sends("47-55") // and one more
}

func TestSender_TimesOut(t *testing.T) {
	c := newConversation(t, 100)
	c.window(8)
	c.sends("0-7")
	c.ack(1, 2, 4)
	c.sends("8-10") // 1 and 4-10 are on their way
	before := c.rto()
	c.onRTO()
	if c.rto() != 2*before || before < minRTO {
		t.Errorf("patience %v and then %v, want it doubled, and %v at least", before, c.rto(), minRTO)
	}
	c.sends("1") // one at a time: nobody knows what the network carries
	c.ack(4, 0, 0)
	c.sends("4-6") // 2 and 3 had arrived
	if c.rto() > before {
		t.Errorf("patience %v after progress, want %v or less", c.rto(), before)
	}
	c.ack(5, 0, 0)
	c.sends("7-8") // half of what had been on its way, from now on slowly
	c.ack(11, 0, 0)
	if c.control.Phase() != congestion.Open || c.lost != 0 || c.sacked != 0 || c.inFlight() != 0 {
		t.Errorf("all has arrived: trouble %d, %d lost, %d arrived, %d in flight", c.control.Phase(), c.lost, c.sacked, c.inFlight())
	}
}

func TestSender_PatienceIsBounded(t *testing.T) {
	c := newConversation(t, 4)
	c.sends("0-2")
	for range 100 {
		c.onRTO()
	}
	if c.rto() != maxRTO {
		t.Errorf("%v after 100 timeouts, want %v", c.rto(), maxRTO)
	}
}

// The last segment asks for its ack; so does each that goes again.
func TestSender_AsksForAcksThatNothingFollows(t *testing.T) {
	s := newSender(10*Payload, NewReno)
	s.unsent = 2*Payload + 1
	for want := range uint64(3) {
		seq, payload, push, ok := s.next()
		if !ok || seq != want || push != (seq == 2) || payload != []int{Payload, Payload, 1}[seq] {
			t.Errorf("segment %d of %d bytes, push %t, %t", seq, payload, push, ok)
		}
	}
	s.onRTO()
	if seq, payload, push, ok := s.next(); seq != 0 || payload != Payload || !push || !ok {
		t.Errorf("again: segment %d of %d bytes, push %t, %t", seq, payload, push, ok)
	}
}
