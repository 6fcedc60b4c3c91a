//go:build linux

package packet_test

import (
	"os"
	"testing"

	"github.com/rawlane/rawlane/internal/kernellink"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/packet"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func open(name string) (*packet.Link, error) { return packet.Open(name, packet.Config{}) }

func openTrains(name string) (*packet.Link, error) {
	return packet.Open(name, packet.Config{Trains: true})
}

func TestLink(t *testing.T) { kernellink.Test(t, open) }

// The suite holds where frames go as trains.
func TestLink_Trains(t *testing.T) { kernellink.TestTrains(t, openTrains) }
