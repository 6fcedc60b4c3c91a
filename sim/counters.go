package sim

// Counters of a network. A frame counts in Sent once; after that each copy of it counts by
// itself, one per receiver and one more for each in Duplicated, and ends in Delivered, Lost,
// Corrupted or Cut.
type Counters struct {
	Sent       uint64 `json:"sent"`       // frames handed to the network: a multicast is one
	Delivered  uint64 `json:"delivered"`  // calls of deliver
	Lost       uint64 `json:"lost"`       // by Faults.Loss, or because the receiver was down or went down
	Duplicated uint64 `json:"duplicated"` // copies that nobody sent
	Reordered  uint64 `json:"reordered"`  // held back by Faults.Reorder
	Delayed    uint64 `json:"delayed"`    // held back by Faults.Delay
	Corrupted  uint64 `json:"corrupted"`  // dropped by the receiver's checksum
	Cut        uint64 `json:"cut"`        // left while their pair was cut
}
