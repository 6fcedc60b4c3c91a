package cli

import (
	"context"
	"errors"
	"testing"
)

func TestCompute(t *testing.T) {
	wrong := errors.New("wrong")
	for _, want := range []error{nil, wrong} {
		if err := Compute(t.Context(), func() error { return want }); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// A computation that goes on does not keep a command that was interrupted.
func TestCompute_Interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	release, ended := make(chan struct{}), make(chan struct{})
	err := Compute(ctx, func() error {
		defer close(ended)
		interrupt()
		<-release
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was interrupted", err)
	}
	close(release)
	<-ended
}
