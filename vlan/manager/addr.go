package manager

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
)

// DefaultSocket is where a node's manager answers if nothing else is said.
const DefaultSocket = "/run/rawlane/manager.sock"

// Addr is where a manager answers: network unix and a path, or network tcp and a host and port.
type Addr struct{ Network, Address string }

// ParseAddr parses unix:PATH, tcp:HOST:PORT, or either without its prefix: what has a slash is a path.
func ParseAddr(text string) (Addr, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok || strings.ContainsRune(text, filepath.Separator) {
		if path == "" {
			return Addr{}, fmt.Errorf("manager address %q: no path (want unix:PATH)", text)
		}
		return Addr{"unix", strings.TrimPrefix(text, "unix:")}, nil
	}
	address := strings.TrimPrefix(text, "tcp:")
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return Addr{}, fmt.Errorf("manager address %q (want unix:PATH or HOST:PORT)", text)
	}
	return Addr{"tcp", address}, nil
}

// ParseAddrs parses a list of addresses, one on a line; blank lines and what follows a # do not count.
func ParseAddrs(name string, r io.Reader) ([]Addr, error) {
	var addrs []Addr
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAddrLine)
	n := 1
	for ; lines.Scan(); n++ {
		if checkText("", strings.ReplaceAll(lines.Text(), "\t", " "), maxAddrLine) != nil {
			return nil, fmt.Errorf("%s: line %d: not text (want a list of managers: unix:PATH or HOST:PORT on each line)", name, n)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		addrs = append(addrs, a)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: line %d: longer than %d bytes (want a list of managers: unix:PATH or HOST:PORT on each line)", name, n, maxAddrLine)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return addrs, nil
}

// String formats a as ParseAddr takes it.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// dial connects, by TLS if config is not nil and the network is tcp.
func (a Addr) dial(ctx context.Context, config *tls.Config) (net.Conn, error) {
	var d net.Dialer
	if a.Network != "tcp" || config == nil {
		return d.DialContext(ctx, a.Network, a.Address)
	}
	return (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, a.Network, a.Address)
}
