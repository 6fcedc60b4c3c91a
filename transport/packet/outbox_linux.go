package packet

import (
	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// outbox is afpacket's, behind RawConn.Control. The closure is made once, so that sending does not allocate; want,
// sent and err are its argument and results.
type outbox struct {
	afpacket.Outbox
	link *Link
	call func(fd uintptr)
	want int
	sent int
	err  error
}

func (o *outbox) init(l *Link) {
	o.link = l
	o.call = func(fd uintptr) { o.sent, o.err = o.Give(fd, o.want) }
	o.Init(l.mac, l.mtu, o.give)
}

func (o *outbox) give(n int) (int, error) {
	o.want = n
	if o.link.closed.Load() || o.link.raw.Control(o.call) != nil {
		return 0, transport.ErrClosed
	}
	return o.sent, o.err
}

// Send implements transport.Link. A frame costs one send(2), a batch one sendmmsg(2) per afpacket.Batch frames.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.out.Send(frames)
	if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
		return n, err
	}
	return n, l.wrap("send", err)
}
