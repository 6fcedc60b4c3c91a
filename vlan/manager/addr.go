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
	"unicode"
	"unicode/utf8"
)

// DefaultSocket is the usual socket of a node's manager.
const DefaultSocket = "/run/rawlane/manager.sock"

// Addr is the address of a manager: network unix and a path, or network tcp and a host and port.
type Addr struct{ Network, Address string }

// ParseAddr parses unix:PATH, tcp:HOST:PORT, or either without its prefix: a text with a slash is a
// path, unless it is a URL.
func ParseAddr(text string) (Addr, error) {
	if scheme, _, isURL := strings.Cut(text, "://"); isURL && scheme != "unix" && !strings.Contains(scheme, "/") {
		return Addr{}, fmt.Errorf("manager address %q: is a URL (want unix:PATH or HOST:PORT)", text)
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok || strings.ContainsRune(text, filepath.Separator) {
		if path == "" {
			return Addr{}, fmt.Errorf("manager address %q: no path (want unix:PATH)", text)
		}
		return Addr{"unix", path}, nil
	}
	address := strings.TrimPrefix(text, "tcp:")
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return Addr{}, fmt.Errorf("manager address %q (want unix:PATH or HOST:PORT)", text)
	}
	return Addr{"tcp", address}, nil
}

const wantList = "want a list of managers: unix:PATH or HOST:PORT on each line"

// maxAddrLine bounds a line of a list of managers, in bytes: a path is shorter.
const maxAddrLine = 4 << 10

// ParseAddrs parses a list of addresses, one on each line; it skips blank lines and the text behind
// a #.
func ParseAddrs(name string, r io.Reader) ([]Addr, error) {
	var addrs []Addr
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAddrLine)
	n := 1
	for ; lines.Scan(); n++ {
		if !isText(lines.Text()) {
			return nil, fmt.Errorf("%s: line %d: not text (%s)", name, n, wantList)
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
		return nil, fmt.Errorf("%s: line %d: longer than %d bytes (%s)", name, n, maxAddrLine, wantList)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return addrs, nil
}

func isText(line string) bool {
	bad := func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
	return utf8.ValidString(line) && !strings.ContainsFunc(line, bad)
}

// dial connects to the manager: over TCP, with a TLS configuration, by TLS.
func (a Addr) dial(ctx context.Context, config *tls.Config) (net.Conn, error) {
	if a.Network == "tcp" && config != nil {
		return (&tls.Dialer{Config: config}).DialContext(ctx, a.Network, a.Address)
	}
	return new(net.Dialer).DialContext(ctx, a.Network, a.Address)
}

// String formats a as ParseAddr takes it.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}
