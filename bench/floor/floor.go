// Package floor builds the C program that shows what the kernel allows: ping-pong and sending over a bare AF_PACKET
// ring, and ping-pong over UDP and TCP sockets that are polled.
package floor

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed c/floor.c
var source []byte

// ErrNoCompiler: there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler (install gcc, or set CC)")

// Build compiles the program into dir and returns its path.
func Build(dir string) (path string, err error) {
	cc, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if err != nil {
		return "", ErrNoCompiler
	}
	path = filepath.Join(dir, "floor")
	text := path + ".c"
	if err := os.WriteFile(text, source, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command(cc, "-O2", "-o", path, text).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return path, nil
}
