// Package baseline builds the C program that shows what the kernel allows: ping-pong and sending
// over a bare AF_PACKET ring, ping-pong over polled UDP and TCP sockets, records over TCP, and
// barriers.
package baseline

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed c/*.c c/*.h
var source embed.FS

// Build compiles the program into dir, unless it is there already, and returns its path. c/main.c
// lists its arguments. CC names the compiler, perhaps with arguments; it is an error if that is not
// there. Without it, and without a C compiler, Build returns "" and warns on stderr: the rows of C
// are left out of the tables.
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
	sum, err := sumOf(words)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "baseline-"+sum)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, compile(append([]string{cc}, words[1:]...), path)
}

// sumOf names what a compiler makes of the source: the same name, the same program.
func sumOf(compiler []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q", compiler)
	files, err := source.ReadDir("c")
	for _, f := range files {
		var b []byte
		if b, err = source.ReadFile("c/" + f.Name()); err != nil {
			break
		}
		fmt.Fprintf(h, "%s%q", f.Name(), b)
	}
	return hex.EncodeToString(h.Sum(nil)[:4]), err
}

// compile makes the program. It is there whole, or not at all: benchmarks that share a folder may
// look for it.
func compile(compiler []string, path string) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), "baseline-*.c")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, source); err != nil {
		return fmt.Errorf("write the C program: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "c", "*.c"))
	if err != nil {
		return err
	}
	made := filepath.Join(dir, "baseline")
	args := slices.Concat(compiler[1:], []string{"-O2", "-Wall", "-Wextra", "-o", made}, files)
	cmd := exec.Command(compiler[0], args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return os.Rename(made, path)
}
