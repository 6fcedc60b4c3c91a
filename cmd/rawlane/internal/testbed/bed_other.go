//go:build !linux

package testbed

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

var errBedLinux = fmt.Errorf("test beds: %w (they are Linux's)", transport.ErrNotSupported)

func bedUp(*cobra.Command, string, testbed.Config) error   { return errBedLinux }
func bedNames() ([]string, error)                          { return nil, errBedLinux }
func bedDown(context.Context, string) error                { return errBedLinux }
func bedExec(context.Context, string, int, []string) error { return errBedLinux }
