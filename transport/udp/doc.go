// Package udp is a link whose frames travel in UDP datagrams, between stations that know each
// other's IP addresses. It needs no privilege and no shared segment, and runs wherever Go does:
// across routers, in clouds and in containers.
//
//	others := []udp.Station{{Addr: "10.0.0.2:7401"}, {Addr: "10.0.0.3:7401"}}
//	link, err := udp.Open("10.0.0.1:7401", udp.Config{Stations: others})
//	link, err := udp.OpenInterface("eth0", udp.Config{}) // or by IP multicast
//
// A datagram holds one frame as it would be on a wire, from the destination's address to the end of
// the payload, without padding and FCS: docs/wire-format.md. A station's Ethernet address is
// computed from its IP address as it is written (StationMAC), so that all who write the same know
// it; it stays what it is when a host name leads to another IP address.
//
// Frames for a group or for all are sent once, if Config.Group is an IP multicast group, and else
// once for each station. VLAN tags are kept, and mean nothing to the network between.
//
// On Linux frames for one station that are sent together leave as one (UDP_SEGMENT), wherever they
// are equal in length, and from the first stream of frames on they arrive as one (UDP_GRO); polling
// takes one system call for several of those. Elsewhere each frame costs a system call. Behind a
// streak of frames for one station a second socket of the port is connected to it, which spares the
// kernel's look-ups.
//
// Anybody who can reach the port can send frames. Package mcd refuses to run without a key on a
// link that listens on a public address. With a key nothing that a stranger sends changes where
// frames go: introductions are sealed, and a station is elsewhere than it was if it answers from
// there and says so, or is silent where it was (see transport.Roamer).
package udp
