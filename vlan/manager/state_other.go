//go:build !unix

package manager

import "os"

// syncFolder does nothing: this system makes renames durable by itself, or cannot be told to.
func syncFolder(string) error { return nil }

// lock does nothing: this system has no advisory locks.
func (f *stateFile) lock() (*os.File, error) { return nil, nil }
