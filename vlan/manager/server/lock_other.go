//go:build !unix

package server

import "os"

// lock does nothing: this system has no advisory locks.
func (f *stateFile) lock() (*os.File, error) { return nil, nil }
