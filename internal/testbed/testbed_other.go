//go:build !linux

package testbed

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

var errLinux = fmt.Errorf("testbed: network namespaces: %w (they are Linux's)", transport.ErrNotSupported)

// Bed is a cluster of network namespaces: on Linux.
type Bed struct{}

// Node is a network namespace: on Linux.
type Node struct{}

// New returns transport.ErrNotSupported.
func New(Config) (*Bed, error) { return nil, errLinux }

// Open returns transport.ErrNotSupported.
func Open(Config) (*Bed, error) { return nil, errLinux }

// Available returns transport.ErrNotSupported.
func Available() error { return errLinux }

// Reexec returns transport.ErrNotSupported.
func Reexec() error { return errLinux }

// Main runs the tests.
func Main(m *testing.M) int { return m.Run() }

// Need skips the test.
func Need(t testing.TB) { t.Helper(); t.Skip(errLinux) }

// Node returns nothing: there is no Bed.
func (*Bed) Node(int) *Node { return nil }

// Nodes returns 0.
func (*Bed) Nodes() int { return 0 }

// Close does nothing.
func (*Bed) Close() error { return nil }

// Do returns transport.ErrNotSupported.
func (*Node) Do(func() error) error { return errLinux }

// Start returns transport.ErrNotSupported.
func (*Node) Start(*exec.Cmd) error { return errLinux }
