package udp

import (
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/transport"
)

// batch is how many frames become datagrams at a time.
const batch = 64

// datagram is a frame for one station.
type datagram struct {
	b     []byte
	to    *address
	frame int // by index in the frames of a Send
}

// tentativeRate bounds the copies for tentative stations, a second.
const (
	tentativeRate  = 200
	tentativeBurst = maxTentative
)

// outgoing is what one Send makes of its frames, a batch of them at a time.
type outgoing struct {
	datagrams []datagram
	copies    [batch][]byte      // frames whose payload has no room for a header before it
	group     address            // of the IP multicast group
	tentative tokenbucket.Bucket // copies for tentative stations
	recent    recent             // of the last frame that was for one station
}

// Send implements transport.Link. Frames for stations that are not known are lost, or go to the IP
// multicast group. A frame that leaves in copies is sent once the first has left: where the system
// has no room for the others, or refuses one, they are lost.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	l.txMu.Lock()
	defer l.txMu.Unlock()
	if len(frames) == 0 && l.closed.Load() {
		return 0, transport.ErrClosed
	}
	sent := 0
	for sent < len(frames) {
		if l.closed.Load() {
			return sent, transport.ErrClosed
		}
		n, err := l.sendBatch(frames[sent:min(len(frames), sent+batch)])
		sent += n
		if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
			l.tx.busy.Add(1)
			return sent, err
		}
		if err != nil {
			l.tx.refused.Add(1)
			return sent, l.wrap("send", err)
		}
	}
	return sent, nil
}

// sendBatch sends up to a batch of frames and counts those that were taken.
func (l *Link) sendBatch(frames []transport.Frame) (taken int, err error) {
	o := &l.out
	o.datagrams = o.datagrams[:0]
	n := 0
	for ; n < len(frames); n++ {
		if err = transport.CheckFrame(&frames[n], l.mtu); err != nil {
			break
		}
		l.address(n, &frames[n])
	}
	given, sendErr := l.socket.send(o.datagrams)
	taken = n
	if sendErr != nil {
		err = sendErr
		taken = o.datagrams[given].frame
		if given > 0 && o.datagrams[given-1].frame == taken { // a copy has left: the frame is on its way
			taken++
			if err = nil; sendErr != transport.ErrBusy { //nolint:errorlint // the very value
				l.tx.refused.Add(1)
			}
		}
	}
	clear(o.datagrams) // keeps no payload of the caller's alive
	size := 0
	for i := range frames[:taken] {
		size += frames[i].WireLen()
	}
	l.tx.frames.Add(uint64(taken))
	l.tx.bytes.Add(uint64(size))
	return taken, err
}

// address makes the datagrams of a frame, the i-th of the batch.
func (l *Link) address(i int, f *transport.Frame) {
	o := &l.out
	if m := l.answerTo(f); m != nil {
		to := l.socket.address(m.from)
		o.datagrams = append(o.datagrams, datagram{l.encode(i, f), &to, i})
		return
	}
	if !f.Dst.IsMulticast() {
		if s := o.recent.find(l.stations.load(), f.Dst); s != nil {
			o.datagrams = append(o.datagrams, datagram{l.encode(i, f), &s.address, i})
			return
		}
		if !l.group {
			return
		}
	}
	if l.group { // also for a station not heard yet, as a switch does
		o.datagrams = append(o.datagrams, datagram{l.encode(i, f), &o.group, i})
		return
	}
	b := l.encode(i, f)
	table := l.stations.load()
	for _, s := range table.known {
		o.datagrams = append(o.datagrams, datagram{b, &s.address, i})
	}
	if f.Dst != transport.Broadcast {
		return
	}
	for _, s := range table.other {
		if o.tentative.Take(int64(clock.Now().Since())) {
			o.datagrams = append(o.datagrams, datagram{b, &s.address, i})
		}
	}
	for k := range table.seeds {
		o.datagrams = append(o.datagrams, datagram{b, &table.seeds[k].address, i})
	}
}

// encode returns a frame's bytes: in place if there is headroom for its header, else a copy.
func (l *Link) encode(i int, f *transport.Frame) []byte {
	b, inPlace := f.PutHeaderInPlace()
	if !inPlace {
		b = f.AppendTo(l.out.copies[i][:0])
		l.out.copies[i] = b
	}
	if f.Src.IsZero() {
		copy(b[6:12], l.mac[:])
	}
	return b
}
