package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Sentinels: test with errors.Is. Besides these a call may fail with memfifo.ErrPeerDown,
// mcd.ErrUnknownNode, the context's error, and a *RemoteError.
var (
	// ErrNoService: nobody serves it on that node.
	ErrNoService = errors.New("nobody serves it")
	// ErrOverloaded: as many requests wait on that node as may. The handler has not run.
	ErrOverloaded = errors.New("too many requests wait")
	// ErrVersion: the node speaks another version of the records. The handler has not run.
	ErrVersion = fmt.Errorf("the node speaks another version of calls (this one speaks %d: update the older)",
		wire.Version)
	// ErrTooLarge: a request is longer than MaxMessage. A response that is, is a *RemoteError.
	ErrTooLarge = errors.New("too large")
	// ErrTaken: the service has a server on this node.
	ErrTaken = errors.New("service is taken")
	// ErrClosed: the domain or its endpoint was closed, on this node, or while the call was under
	// way on that of the server. A node whose domain is closed, or was never opened, answers no
	// later call: these fail with memfifo.ErrPeerDown after Config.PeerTimeout. Is net.ErrClosed.
	ErrClosed = memfifo.ErrClosed

	errClosing = fmt.Errorf("the node closes its domain: %w", ErrClosed)
)

// RemoteError is what a handler has returned.
type RemoteError struct {
	Node    mcd.NodeID
	Service string
	Message string // the error's text
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("node %d, service %s: %s", e.Node, e.Service, e.Message)
}

// callError names the call that has failed.
func callError(node mcd.NodeID, service string, err error) error {
	if down, ok := errors.AsType[*memfifo.PeerDownError](err); ok && down.Reason == memfifo.Silent {
		err = fmt.Errorf("%w (is the node up, with rpc open?)", err)
	}
	return fmt.Errorf("call node %d, service %s: %w", node, service, err)
}

// ofStatus returns the error of a response.
func ofStatus(s wire.Status, node mcd.NodeID, service string, data []byte) error {
	switch s {
	case wire.OK:
		return nil
	case wire.Failed:
		return &RemoteError{Node: node, Service: service, Message: string(data)}
	case wire.NoService:
		return ErrNoService
	case wire.Overloaded:
		return ErrOverloaded
	case wire.WrongVersion:
		return ErrVersion
	case wire.Closing:
		return errClosing
	}
	return context.DeadlineExceeded // expired: the caller's own clock mostly says so first
}
