package offload_test

import (
	"context"
	"log"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

// The member with the lowest number has a unit, and computes while the others are released.
func ExampleOpen() {
	center := func(ep *mcd.Endpoint, compute func()) {
		unit, err := offload.Open("eth0") // the interface of the endpoint's link
		if err != nil {
			log.Fatal(err)
		}
		defer unit.Close()
		service, err := barrier.Open(ep, barrier.Config{Unit: unit})
		if err != nil {
			log.Fatal(err)
		}
		defer service.Close()
		group, err := service.Group(barrier.GroupConfig{Algorithm: schedule.Offload()})
		if err != nil {
			log.Fatal(err)
		}
		for range 1000 {
			ticket, err := group.Arrive()
			if err != nil {
				log.Fatal(err)
			}
			compute()
			if err := ticket.Wait(context.Background()); err != nil {
				log.Fatal(err)
			}
		}
	}
	_ = center
}
