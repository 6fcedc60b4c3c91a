package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/transport"
)

// VirtioLen is the length of struct virtio_net_hdr, which a socket with PACKET_VNET_HDR has before
// each packet: how the kernel is to cut it, or how it was joined. Its fields are in this
// processor's byte order.
const VirtioLen = 10

const (
	virtioNeedsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	virtioUDP           = 5 // VIRTIO_NET_HDR_GSO_UDP_L4
)

// Bounds of trains on a socket.
const (
	// trainSendBuffer is what may wait for the NIC, in bytes: a window of 64 KiB trains.
	trainSendBuffer = 4 << 20
	// gatherLen is up to which length the payloads of a train are copied together: the kernel takes
	// 40 ns for a vector.
	gatherLen = 256
	// RingTrains is how much of long trains may wait for a ring's Poll, in bytes: the windows of
	// some senders.
	RingTrains = 16 << 20
	// answerRate and answerBurst bound the answers to offers, a second: strangers cause them.
	answerRate  = 4000
	answerBurst = 100
)

// trains is the half of a sender that sends trains, by a socket of its own. The sender's lock
// guards it.
type trains struct {
	fd         int
	ifi        *Interface
	etherType  transport.EtherType
	off        bool // the kernel refuses trains
	sendsOne   bool // by one queue, in which plain frames and trains keep their order
	receiveOne bool // likewise
	stations   *stations
	unordered  bool // there was a station to which plain frames and trains may overtake each other
	answers    tokenbucket.Bucket
	plain      plainSockets // on this host, by the same interface; of the goroutine that polls

	header [VirtioLen + transport.MaxHeaderLen + TrainOverhead]byte
	short  [2 * controlLen]byte
	vec    [1 + maxTrain]unix.Iovec
	msg    unix.Msghdr

	gathered [maxTrain * gatherLen]byte

	count atomic.Uint64 // trains sent
}

// openTrains makes the socket that sends trains. It goes through the queueing discipline: past it
// the kernel drops what it has to cut itself.
func openTrains(ifi *Interface, etherType transport.EtherType) (*trains, error) {
	fd, err := OpenSendSocket(ifi.Index)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		_ = unix.Close(fd) // the first error is the one to report
		return nil, err
	}
	setBuffer(fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, trainSendBuffer)
	nic := &ifi.Driver
	t := &trains{
		fd: fd, ifi: ifi, etherType: etherType,
		sendsOne: nic.TxQueues == 1 && nic.Fifo, receiveOne: nic.RxQueues == 1 && !nic.Steers,
		stations: newStations(rand.Uint64), answers: tokenbucket.New(answerRate, answerBurst),
		plain: newPlainSockets(ifi.Index, etherType),
	}
	t.msg.Iov = &t.vec[0]
	return t, nil
}

// TakesTrains reports whether a link sends and receives trains. Those of granted sockets do not:
// the service's filter looks at the port of one message, and a train has many. Nor do links for all
// EtherTypes, or for IPv4: nothing tells trains from other packets. Nor do those of older kernels.
func TakesTrains(not bool, granted *Granted, t transport.EtherType) bool {
	return !not && granted == nil && t != transport.EtherTypeAny && t != etherTypeIPv4 && kernelTakesTrains()
}

var kernelTakesTrains = sync.OnceValue(func() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && describesTrains(unix.ByteSliceToString(name.Release[:]))
})

// describesTrains reports whether a kernel of that release tells a socket with PACKET_VNET_HDR how
// it has joined UDP packets: Linux 6.2 and later. An older one joins them, too, but drops what it
// cannot describe, and a ring keeps the slot of that: the link is deaf from then on.
func describesTrains(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 6 || major == 6 && minor >= 2)
}

func (t *trains) close() error { return errors.Join(unix.Close(t.fd), t.plain.close()) }

// setBuffer sets how much the kernel keeps: past the system's limit with CAP_NET_ADMIN, else up to
// it.
func setBuffer(fd, option, force, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, size)
	}
}

// ReceiveTrains has a receiving socket get trains whole. It comes before the socket's ring is made:
// a packet that does not fit a slot is then marked there, and kept whole for recv(2), up to a
// buffer of so many bytes.
func ReceiveTrains(fd, buffer int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	setBuffer(fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, buffer)
	return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_COPY_THRESH, 1)
}

// nextTrain returns how many of the first frames go next in one way: as a train to a station, or,
// if that is nil, as they are.
func (s *sender) nextTrain(frames []transport.Frame) (n int, to *station) {
	t := s.trains
	var now monotime.Time
	for n < min(len(frames), Batch) {
		rest := frames[n:]
		cars := 1
		if rest[0].EtherType == t.etherType {
			cars = trainLen(rest, t.ifi.MTU)
		}
		if cars == 1 && !t.unordered {
			n++
			continue
		}
		if now.IsZero() {
			now = clock.Now()
		}
		if st := t.takes(now, rest[:cars]); st != nil {
			if n == 0 {
				return cars, st
			}
			break
		}
		n += cars
	}
	return min(n, Batch), nil
}

// takes returns the station of frames if they are to go there as a train.
func (t *trains) takes(now monotime.Time, frames []transport.Frame) *station {
	f := &frames[0]
	if len(frames) == 1 && !t.headsAlone(now, f) {
		return nil
	}
	st, offer := t.stations.takes(now, f)
	if offer != 0 {
		if mtu, ok := interfaceMTU(t.fd, t.ifi.Index); ok && mtu < t.ifi.MTU {
			t.stations.find(f).refused(now) // a train's segments meet no error, and frames do
			return nil
		}
		c := control{vid: keyOf(f).vid, number: offer, ordered: t.receiveOne}
		t.sendControl(trainOffer, f, &c)
	}
	return st
}

// headsAlone reports whether a frame that goes alone has a train's headers: where it would overtake
// trains, or they it, for as long as its station takes trains. It renews that, as a train does.
func (t *trains) headsAlone(now monotime.Time, f *transport.Frame) bool {
	if f.EtherType != t.etherType || len(f.Payload) == 0 || len(f.Payload) > t.ifi.MTU-TrainOverhead {
		return false
	}
	st := t.stations.find(f)
	return st != nil && st.taking(now) && !(st.ordered && t.sendsOne)
}

// sendTrain sends frames as one train to a station, and returns how many were taken: all, or none.
// A device without a queue that has the kernel cut trains may have sent some of none.
func (s *sender) sendTrain(frames []transport.Frame, to *station) (int, error) {
	t, f := s.trains, &frames[0]
	if err := transport.CheckFrame(f, s.ifi.MTU); err != nil {
		return 0, err
	}
	if err := s.takeQdisc(); err != nil {
		return 0, err
	}
	bytes, vectors := t.gather(frames)
	e := t.give(trainFrames, f, bytes, len(f.Payload), vectors)
	clear(t.vec[1 : 1+vectors]) // keeps no payload of the caller's alive
	switch e {
	case 0:
		t.count.Add(1)
		return len(frames), nil
	case unix.ENOBUFS, unix.EAGAIN, unix.EINTR:
		return s.refuse(len(frames), e)
	case unix.ENETDOWN, unix.ENXIO, unix.ENODEV:
		return 0, e
	}
	to.refused(clock.Now()) // the frames go as they are, and meet the error again if it is another one
	return 0, nil
}

// gather has the vectors hold the payloads of a train, and returns how many bytes and vectors these
// are: one vector for all that lie side by side, as short ones do behind it.
func (t *trains) gather(frames []transport.Frame) (bytes, vectors int) {
	short := t.gathered[:0]
	var end uintptr // of the last vector
	for i := range frames {
		p := frames[i].Payload
		at := uintptr(unsafe.Pointer(&p[0]))
		if at != end && len(p) <= gatherLen {
			short = append(short, p...)
			p = short[len(short)-len(p):]
			at = uintptr(unsafe.Pointer(&p[0]))
		}
		if at != end {
			vectors++
			t.vec[vectors] = unix.Iovec{Base: &p[0]}
		}
		v := &t.vec[vectors]
		v.SetLen(int(v.Len) + len(p))
		end = at + uintptr(len(p))
		bytes += len(p)
	}
	return bytes, vectors
}

// takeQdisc has single frames go through the queueing discipline, too, from the first train on:
// past it they would overtake trains that wait there.
func (s *sender) takeQdisc() error {
	if !s.bypass || s.noQueue {
		return nil
	}
	s.bypass = false
	return unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 0)
}

// sendControl sends an offer or an answer, like a frame. It may be lost.
func (t *trains) sendControl(kind trainKind, like *transport.Frame, c *control) {
	b := c.append(t.short[:0])
	t.vec[1].Base = &b[0]
	t.vec[1].SetLen(len(b))
	if e := t.give(kind, like, len(b), controlLen, 1); e == unix.EINVAL {
		t.off = true // a kernel that knows nothing of trains
	}
	t.vec[1].Base = nil
}

// give hands a packet to the kernel: a header like a frame's, and bytes of payload in vectors
// behind it, to be cut into segments of a size. The call does not block, so the Go scheduler need
// not know of it.
func (t *trains) give(kind trainKind, like *transport.Frame, bytes, size, vectors int) unix.Errno {
	h := t.header[:]
	f := transport.Frame{Dst: like.Dst, Src: like.Src, EtherType: etherTypeIPv4, OptionalTag: like.OptionalTag}
	if f.Src.IsZero() {
		f.Src = t.ifi.MAC
	}
	ethernet := f.PutHeader(h[VirtioLen:])
	putTrainHeader(h[VirtioLen+ethernet:], kind, like.EtherType, bytes)
	h[0], h[1] = virtioNeedsChecksum, 0
	order := binary.NativeEndian
	order.PutUint16(h[2:], uint16(ethernet+TrainOverhead)) // hdr_len
	order.PutUint16(h[4:], 0)
	if bytes > size {
		h[1] = virtioUDP
		order.PutUint16(h[4:], uint16(size)) // gso_size
	}
	order.PutUint16(h[6:], uint16(ethernet+trainIP)) // csum_start
	order.PutUint16(h[8:], 6)                        // csum_offset
	t.vec[0].Base = &h[0]
	t.vec[0].SetLen(VirtioLen + ethernet + TrainOverhead)
	t.msg.SetIovlen(1 + vectors)
	_, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(t.fd), uintptr(unsafe.Pointer(&t.msg)), unix.MSG_DONTWAIT)
	return e
}

// control takes a segment of an offer or an answer that came like a frame. The caller polls.
func (s *sender) control(kind trainKind, like *transport.Frame, b []byte) {
	// An offer to a group would have each of its members answer the same station.
	if kind == trainOffer && (like.Dst != s.ifi.MAC || like.Src.IsMulticast() || s.trains.plain.any(clock.Now())) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trains
	if s.fd < 0 || t.off {
		return
	}
	c, whole := t.stations.receive(kind, like.Src, b)
	if !whole {
		return
	}
	now := clock.Now()
	if kind == trainAnswer {
		if t.stations.answered(now, &c) {
			t.unordered = t.unordered || !c.ordered || !t.sendsOne
		}
		return
	}
	if !t.answers.Take(int64(now.Since())) {
		return
	}
	c.ordered = t.receiveOne
	answer := transport.Frame{Dst: like.Src, EtherType: t.etherType, OptionalTag: like.OptionalTag}
	t.sendControl(trainAnswer, &answer, &c)
}

// ReceivedTrain turns a received packet, of which virtio is the struct virtio_net_hdr, into a
// train, and reports whether there are frames to hand out. If mayBe is false, the packet is no
// train. It refuses, and counts, what Accept does.
func ReceivedTrain(a *Attachment, r Received, virtio []byte, t *Train) (ok, mayBe bool) {
	if !isIPv4(r.Bytes) {
		return false, false
	}
	size := 0
	if virtio[1] == virtioUDP {
		size = int(binary.NativeEndian.Uint16(virtio[4:]))
	}
	if len(r.Bytes) < r.Len {
		a.rx.noRoom.Add(uint64(max(1, r.Len/max(size, trainHeader))))
		return false, true
	}
	kind, payload, ok := parseTrain(r.Bytes, a.cfg.EtherType)
	if !ok {
		a.rx.malformed.Add(1)
		return false, true
	}
	r.Bytes = r.Bytes[:transport.HeaderLen]
	r.Len = transport.HeaderLen
	t.frame, t.rest, t.size = transport.Frame{}, nil, len(payload)
	if !Accept(a, r, &t.frame) {
		return false, true
	}
	if size > 0 {
		t.size = size
	}
	t.frame.EtherType = a.cfg.EtherType
	switch kind {
	case trainFrames:
		t.rest = payload
		if t.size < len(payload) {
			a.rx.trains.Add(1)
		}
	case trainOffer, trainAnswer:
		for len(payload) > 0 {
			n := min(t.size, len(payload))
			a.sender.control(kind, &t.frame, payload[:n])
			payload = payload[n:]
		}
	}
	return len(t.rest) > 0, true
}
