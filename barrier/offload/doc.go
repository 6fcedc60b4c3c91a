// Package offload is the unit of a barrier's Center: a program in the path of its NIC (XDP) that
// counts the members' arrivals and answers the last one with the release.
//
//	u, err := offload.Open("eth0")                    // on the Center's node; others need none
//	s, err := barrier.Open(ep, barrier.Config{Unit: u})
//	g, err := s.Group(barrier.GroupConfig{Algorithm: schedule.Offload()})
//
//	member ---arrive---> NIC -> program: count ----> dropped
//	member ---arrive---> NIC -> program: all here -> the frame becomes the release, and goes out
//	Center   arrives in memory that it shares with the program
//
// Frames that are counted wake nobody on the Center's node. So a Center that computes between
// Arrive and Wait does not delay the others, and spends no time on them. One that waits is woken
// once, by the last frame, and sends the release itself.
//
// The first barrier of each number runs in the processes, where members learn who the others are,
// and so does one with a member that has failed, has left or is asked whether it lives. Lost frames
// are asked for as ever. A group whose frames carry tags or seals is not counted here, nor one
// with more than 1024 members. A member that sends the Center trains (package transport/ring) may
// have its arrivals behind a train's headers: they are counted as others are.
//
// The program is the process's: the kernel takes it off the interface when the unit is closed or
// the process ends. An interface has one XDP program: link xdp cannot share it.
//
// Source: SCMD §3.5, §3.6: each node has a board with a unit, and the Center's alone detects.
package offload
