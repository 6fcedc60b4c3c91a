//go:build linux

package main

import (
	"context"
	"strings"
)

// check is a command of the go tool that has to succeed: layer L13.
type check struct {
	env  []string
	args []string
}

// checks run the cores where other things break: under the race detector, with checked pointers, on
// a 32-bit machine, for which all is vetted, too, and for a big-endian one, which is not run here.
var checks = []check{
	{nil, []string{"test", "-race", "-short", "./barrier/...", "./memfifo/...", "./mcd/..."}},
	{nil, []string{"test", "-gcflags=all=-d=checkptr", "-short", "./memfifo/...", "./mcd/...", "./transport/..."}},
	{[]string{"GOARCH=386", "CGO_ENABLED=0"}, []string{"test", "-short", "./barrier/...", "./memfifo/internal/...",
		"./mcd/internal/...", "./mpi/internal/...", "./sim/...", "./internal/..."}},
	{[]string{"GOARCH=386", "CGO_ENABLED=0"}, []string{"vet", "./..."}},
	{[]string{"GOARCH=s390x", "CGO_ENABLED=0"}, []string{"vet", "./..."}},
}

func workChecks(ctx context.Context, w *workshop, cursor, _ uint64) (r result, err error) {
	c := &checks[cursor%uint64(len(checks))]
	cmd := w.command(ctx, "go", c.args...)
	cmd.Env = append(cmd.Environ(), c.env...)
	out, err := cmd.CombinedOutput()
	r, err = judge(string(out), err, strings.Join(append(append(c.env[:len(c.env):len(c.env)], "go"), c.args...), " "))
	r.figures["checks"]++
	return r, err
}
