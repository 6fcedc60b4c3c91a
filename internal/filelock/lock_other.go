//go:build !unix || solaris || aix

package filelock

import (
	"errors"
	"fmt"
)

func try(path string) (*Lock, error) {
	return nil, fmt.Errorf("lock %s: %w by this system", path, errors.ErrUnsupported)
}
