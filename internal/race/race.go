// Package race tells the race detector of an order that it cannot see: the one that frames make on
// their way through the network. What a goroutine did before it sent a message comes before what
// the goroutine that polls does with a frame that answers it; between the two lie the kernel and
// another node. Without the detector the functions do nothing.
package race
