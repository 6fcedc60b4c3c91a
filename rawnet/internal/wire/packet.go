// Package wire is the layout of rawnet's packets: what package rawnet and readers of captures
// share. That of streams is package mux's.
package wire

// A packet is a message of mcd, with the names of both services before the data:
//
//	0 version, 1 byte
//	1 length of the receiver's service, 1 byte, not 0
//	2 length of the sender's service, 1 byte, not 0
//	3 0
//	4 the receiver's service, the sender's service, data
const packetVersion = 1

// PacketHead is the length of what is before the services, in bytes.
const PacketHead = 4

// AppendPacket appends a packet to b.
func AppendPacket(b []byte, to, from string, data []byte) []byte {
	b = append(b, packetVersion, byte(len(to)), byte(len(from)), 0)
	return append(append(append(b, to...), from...), data...)
}

// ParsePacket returns views of a packet's parts. ok is false if it is malformed.
func ParsePacket(b []byte) (to, from, data []byte, ok bool) {
	if len(b) < PacketHead || b[0] != packetVersion || b[1] == 0 || b[2] == 0 || b[3] != 0 {
		return nil, nil, nil, false
	}
	sender := PacketHead + int(b[1])
	end := sender + int(b[2])
	if len(b) < end {
		return nil, nil, nil, false
	}
	return b[PacketHead:sender], b[sender:end], b[end:], true
}
