//go:build !unix

package pmi

import (
	"errors"
	"net"
)

// inherit is of systems on which processes inherit sockets.
func inherit(int) (net.Conn, error) { return nil, errors.ErrUnsupported }
