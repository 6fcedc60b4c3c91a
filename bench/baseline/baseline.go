// Package baseline builds the C program that shows what the kernel allows: ping-pong and sending
// over a bare AF_PACKET ring, ping-pong over polled UDP and TCP sockets, records over TCP, and
// barriers.
package baseline

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

// ErrNoCompiler means that there is no C compiler on this machine.
var ErrNoCompiler = errors.New("no C compiler (install gcc, or set CC)")

// Build compiles the program into dir and returns its path. c/main.c lists its arguments.
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
	path = filepath.Join(dir, "baseline")
	cmd := exec.Command(cc, append([]string{"-O2", "-Wall", "-Wextra", "-o", path}, files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return path, nil
}

// BuildIfPossible is Build, but returns "" and warns on stderr if there is no compiler: the rows of
// C are left out of the tables.
func BuildIfPossible(dir string) (path string, err error) {
	path, err = Build(dir)
	if errors.Is(err, ErrNoCompiler) {
		fmt.Fprintf(os.Stderr, "%v: the C rows are left out, and with them the ratios\n", err)
		return "", nil
	}
	return path, err
}
