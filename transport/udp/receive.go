package udp

import (
	"net/netip"

	"github.com/rawlane/rawlane/transport"
)

// Poll implements transport.Link. It makes one system call at most: a second one would overwrite
// the first one's frames.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	n, bytes, err := 0, 0, error(nil)
	if len(frames) > 0 && !l.socket.pending() {
		err = l.socket.receive()
	}
	for n < len(frames) {
		b, from, ok := l.socket.next()
		if !ok {
			break
		}
		if f := &frames[n]; l.accept(b, from, f) {
			bytes += f.WireLen()
			n++
		}
	}
	add(&l.rx.frames, n)
	add(&l.rx.bytes, bytes)
	return n, l.wrap("poll", err)
}

// accept turns a datagram into f and reports whether Poll hands it out: not what is too short, of
// another type, for another station or a group not joined, or the link's own.
func (l *Link) accept(b []byte, from netip.AddrPort, f *transport.Frame) bool {
	var err error
	if *f, err = transport.ParseFrame(b); err != nil {
		add(&l.rx.malformed, 1)
		return false
	}
	switch {
	case f.EtherType != l.etherType && l.etherType != transport.EtherTypeAny, f.Src == l.mac:
		return false
	case f.Dst.IsMulticast():
		if !l.joined.Has(f.Dst) {
			return false
		}
	case f.Dst != l.mac:
		return false
	}
	return true
}
