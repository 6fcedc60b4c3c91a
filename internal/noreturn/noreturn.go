// Package noreturn is for tests of calls that do not return to their caller, as a function of the
// program's that runs in them panics, or ends the goroutine.
package noreturn

import (
	"runtime"
	"testing"
)

// Ways are the ways in which a function does not return.
var Ways = map[string]func(){"panic": func() { panic("by the test") }, "Goexit": runtime.Goexit}

// Run calls f, which is not to return, in a goroutine of its own, and returns when that has ended.
func Run(t testing.TB, f func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		ended <- f()
	}()
	if err, returned := <-ended; returned {
		t.Fatalf("it has returned (%v), and was to end as the function did", err)
	}
}
