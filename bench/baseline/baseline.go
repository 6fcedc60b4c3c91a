// Package baseline builds the C program that shows what the kernel allows: ping-pong and sending
// over a bare AF_PACKET ring, ping-pong over polled UDP and TCP sockets, records over TCP, and
// barriers.
package baseline

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed c/*.c c/*.h
var source embed.FS

// Build compiles the program into dir and returns its path. c/main.c lists its arguments. CC names
// the compiler, perhaps with arguments; it is an error if that is not there. Without it, and
// without a C compiler, Build returns "" and warns on stderr: the rows of C are left out of the
// tables.
func Build(dir string) (path string, err error) {
	words := strings.Fields(os.Getenv("CC"))
	given := len(words) > 0
	if !given {
		words = []string{"cc"}
	}
	cc, err := exec.LookPath(words[0])
	if err != nil && given {
		return "", fmt.Errorf("CC=%s: %w", os.Getenv("CC"), err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no C compiler (install gcc, or set CC): "+
			"the C rows are left out, and with them the ratios")
		return "", nil
	}
	if err := os.CopyFS(dir, source); err != nil {
		return "", fmt.Errorf("write the C program: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "c", "*.c"))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "baseline")
	cmd := exec.Command(cc, slices.Concat(words[1:], []string{"-O2", "-Wall", "-Wextra", "-o", path}, files)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return path, nil
}
