package afpacket

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/transport"
)

// A train is frames for one station, equal in length but the last, that go through the kernel as
// one packet: UDP segmentation offload (GSO_UDP_L4). Each of them travels behind an IPv4 and a UDP
// header, which is all that the kernel, and a NIC, know how to cut and join:
//
//	+----------+-----------+---------+--------+-----------+-----------+--     --+-----------+
//	| Ethernet | 802.1Q    | IPv4 20 | UDP 8  | frame 1's | frame 2's |   ...   | the last  |
//	| addresses| if any    |         |        | payload   | payload   |         | payload   |
//	+----------+-----------+---------+--------+-----------+-----------+--     --+-----------+
//
// The receiver takes apart what comes, joined or cut, by segment size.
const (
	trainIP  = 20
	trainUDP = 8
	// TrainOverhead is what a train's headers take of the MTU, in bytes.
	TrainOverhead = trainIP + trainUDP
	trainHeader   = transport.HeaderLen + TrainOverhead

	// maxTrain is how many frames a train has at most: what every kernel takes.
	maxTrain = 64
	// minTrain is how many it has at least: two or three spare the kernel little, and their IP and
	// UDP headers take 2 % of a line that is full.
	minTrain = 4
	// maxTrainBytes bounds the frames' payloads: a packet has 65,535 bytes at most, and so do
	// the largest that devices take (gso_max_size), with all headers.
	maxTrainBytes = 65000

	protocolUDP = 17
)

const etherTypeIPv4 transport.EtherType = 0x0800

// The addresses of trains. Every host discards a packet whose source is a group, before it looks
// for a route (RFC 1122 §3.2.1.3), and no router forwards it (RFC 1812 §5.3.7): so the receiving
// host's own IP stack is spared. Both are of the administratively scoped block (RFC 2365).
const (
	trainSource      uint32 = 239<<24 | 82<<16 | 76<<8 | 1
	trainDestination uint32 = 239<<24 | 82<<16 | 76<<8 | 2
)

// trainKind is what a train carries. It is its UDP source port; the destination port is the
// EtherType of the frames.
type trainKind uint16

const (
	trainFrames trainKind = 1 + iota // frames
	trainOffer                       // a challenge: do trains arrive there?
	trainAnswer                      // its response
)

// putTrainHeader writes the IPv4 and UDP header of a train to b, which has TrainOverhead bytes. The
// UDP checksum is the pseudo-header's part alone: the kernel or the NIC adds the rest, for each
// frame that it cuts.
func putTrainHeader(b []byte, kind trainKind, etherType transport.EtherType, payload int) {
	_ = b[TrainOverhead-1]
	total := TrainOverhead + payload
	binary.BigEndian.PutUint32(b[0:], 0x45<<24|uint32(total))
	binary.BigEndian.PutUint32(b[4:], 0x4000) // may not be fragmented
	binary.BigEndian.PutUint32(b[8:], 1<<24|protocolUDP<<16)
	binary.BigEndian.PutUint32(b[12:], trainSource)
	binary.BigEndian.PutUint32(b[16:], trainDestination)
	binary.BigEndian.PutUint16(b[10:], ^fold(0x4500+uint32(total)+0x4000+(1<<8|protocolUDP)+addressSum))
	length := trainUDP + payload
	binary.BigEndian.PutUint16(b[20:], uint16(kind))
	binary.BigEndian.PutUint16(b[22:], uint16(etherType))
	binary.BigEndian.PutUint16(b[24:], uint16(length))
	binary.BigEndian.PutUint16(b[26:], fold(addressSum+protocolUDP+uint32(length)))
}

// addressSum is the addresses' part of a checksum.
const addressSum = trainSource>>16 + trainSource&0xffff + trainDestination>>16 + trainDestination&0xffff

// fold makes 16 bits of a sum, in ones' complement.
func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}

// parseTrain reads a frame without tag, from its addresses on. ok is false if it is no train for
// the EtherType. What follows the packet is padding.
func parseTrain(b []byte, etherType transport.EtherType) (kind trainKind, payload []byte, ok bool) {
	if !isIPv4(b) || len(b) < trainHeader {
		return 0, nil, false
	}
	ip := b[transport.HeaderLen:]
	total := int(binary.BigEndian.Uint16(ip[2:]))
	length := int(binary.BigEndian.Uint16(ip[24:]))
	if ip[0] != 0x45 || ip[9] != protocolUDP || total < TrainOverhead || total > len(ip) ||
		binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 || // a fragment
		binary.BigEndian.Uint32(ip[12:]) != trainSource || binary.BigEndian.Uint32(ip[16:]) != trainDestination ||
		binary.BigEndian.Uint16(ip[22:]) != uint16(etherType) || length != total-trainIP {
		return 0, nil, false
	}
	return trainKind(binary.BigEndian.Uint16(ip[20:])), ip[TrainOverhead:total:total], true
}

// isIPv4 reports whether a frame without tag has IPv4's EtherType, as a train does.
func isIPv4(b []byte) bool {
	return len(b) >= transport.HeaderLen && b[12] == byte(etherTypeIPv4>>8) && b[13] == byte(etherTypeIPv4&0xff)
}

// trainLen returns how many of the first frames can go as one train; 1 if the first goes alone.
func trainLen(frames []transport.Frame, mtu int) int {
	first := &frames[0]
	size := len(first.Payload)
	if size == 0 || size > mtu-TrainOverhead || first.Dst.IsMulticast() {
		return 1
	}
	n, bytes := 1, size
	for n < min(len(frames), maxTrain) {
		f := &frames[n]
		next := len(f.Payload)
		if next == 0 || next > size || bytes+next > maxTrainBytes || f.Dst != first.Dst || f.Src != first.Src ||
			f.EtherType != first.EtherType || f.OptionalTag != first.OptionalTag {
			break
		}
		n, bytes = n+1, bytes+next
		if next < size { // the last
			break
		}
	}
	if n < minTrain {
		return 1
	}
	return n
}

// Train is what is left of a received train.
type Train struct {
	frame transport.Frame // of each, but for the payload
	rest  []byte
	size  int // of a segment
}

// Next hands out frames and returns how many.
func (t *Train) Next(frames []transport.Frame) (n int) {
	for n < len(frames) && len(t.rest) > 0 {
		size := min(t.size, len(t.rest))
		frames[n] = t.frame
		frames[n].Payload = t.rest[:size:size]
		t.rest = t.rest[size:]
		n++
	}
	return n
}

// Left reports whether there is a frame left.
func (t *Train) Left() bool { return len(t.rest) > 0 }
