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

func openPlain(name string) (*ring.Link, error) { return ring.Open(name, ring.Config{NoTrains: true}) }

func TestLink(t *testing.T) { kernellink.Test(t, open) }

// The suite holds where frames go as trains.
func TestLink_Trains(t *testing.T) { kernellink.TestTrains(t, open) }

func TestLink_NoTrains(t *testing.T) { kernellink.Test(t, openPlain) }

// Stamps lie between the call that sends a frame and the poll that returns it.
func TestLink_Stamps(t *testing.T) { kernellink.TestStamps(t, open) }

// Trains have no stamps, and do not count.
func TestLink_StampsBesideTrains(t *testing.T) { kernellink.TestStampsBesideTrains(t, open) }
