package mpi

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// A program that ends with its context takes its children along.
func TestRunProgram_EndsWithItsContext(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	ended := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, ended)
	defer cancel()
	begun := time.Now()
	if err := runProgram(ctx, nil, sh, "-c", "sleep 60 & sleep 60"); !errors.Is(err, ended) {
		t.Errorf("ended with %v, want the context's cause", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %v: what the program had started went on", took)
	}
}
