package sim

// Counters of a network. A frame counts in Sent once. Each copy of it, one for each receiver and
// one for each duplicate, ends in Delivered, Lost, Corrupted or Cut.
type Counters struct {
	Sent       uint64 `json:"sent"`       // frames: a multicast is one
	Delivered  uint64 `json:"delivered"`  // calls of deliver
	Lost       uint64 `json:"lost"`       // by Faults.Loss, or because the receiver was down or went down
	Duplicated uint64 `json:"duplicated"` // second copies, by Faults.Duplicate
	Reordered  uint64 `json:"reordered"`  // late by Faults.Reorder
	Delayed    uint64 `json:"delayed"`    // late by Faults.Delay
	Corrupted  uint64 `json:"corrupted"`  // dropped by the receiver's checksum
	Cut        uint64 `json:"cut"`        // sent while their pair was cut
}
