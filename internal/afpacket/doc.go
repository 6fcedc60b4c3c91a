// Package afpacket holds what the links over AF_PACKET share: finding the interface, the filter, group membership,
// the NIC's VLAN filter, the bytes of sent frames, and sleeping in the runtime's poller.
//
// A socket is bound to all EtherTypes and filtered in the kernel. One bound to our EtherType would get
// tagged frames with the tag gone: the kernel takes it off before such sockets see the frame.
package afpacket
