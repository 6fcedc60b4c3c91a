// Package floor builds the C program that shows what the kernel allows: ping-pong and sending over
// a bare AF_PACKET ring, ping-pong over UDP and TCP sockets that are polled, records over TCP, and
// barriers.
package floor

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed c/*.c c/*.h
var source embed.FS

// ErrNoCompiler: there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler (install gcc, or set CC)")

// Build compiles the program into dir and returns its path. c/main.c says how it is called.
func Build(dir string) (path string, err error) {
	cc, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if err != nil {
		return "", ErrNoCompiler
	}
	if err := os.CopyFS(dir, source); err != nil {
		return "", fmt.Errorf("write the C program: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "c", "*.c"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "floor")
	cmd := exec.Command(cc, append([]string{"-O2", "-Wall", "-Wextra", "-o", path}, files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return path, nil
}
