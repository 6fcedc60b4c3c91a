// Package afxdp opens AF_XDP on a network interface: all that needs privilege. It loads the link's
// program and attaches it in the best mode that there is, makes a socket for each receive queue,
// has the NIC leave VLAN tags in the frames, and undoes it.
//
// Who uses the sockets need not be who opened them. Package xdp is the link that does both.
package afxdp
