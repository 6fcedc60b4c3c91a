//go:build linux

package ring_test

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/ring"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func open(name string) (*ring.Link, error) { return ring.Open(name, ring.Config{}) }

func openTrains(name string) (*ring.Link, error) { return ring.Open(name, ring.Config{Trains: true}) }

func TestLink(t *testing.T) { kernellink.Test(t, open) }

// The suite holds where frames go as trains.
func TestLink_Trains(t *testing.T) { kernellink.TestTrains(t, openTrains) }
