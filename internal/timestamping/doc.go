// Package timestamping has the kernel stamp what sockets send and receive, SO_TIMESTAMPING, and
// reads the stamps: Documentation/networking/timestamping.rst.
package timestamping
