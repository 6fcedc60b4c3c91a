// Package vbft has the experiments of VFREC-Net with VLAN-based fat trees, as programs for package
// ether: the same switches and hosts, in virtual time.
//
// [Change] shows what a route change does to the network while its two ends disagree (VFREC §5.2,
// figure 9). [CG] runs a program whose pairs of processes collide on the routes of the default plan
// (§5.3, figure 11), and [Cases] are its networks and plans.
//
// The package does not know the results. They come out of queues that fill up, switches that flood,
// and hosts that retransmit. docs/simulation.md has the numbers, beside the paper's.
package vbft
