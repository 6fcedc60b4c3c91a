// Package vbft has the experiments that VFREC-Net's authors made with VLAN-based fat trees, as
// programs for package ether: the same switches and hosts, in virtual time.
//
// [Change] is what a route change does to the network while its two ends disagree (VFREC §5.2,
// figure 9). [CG] is a program whose pairs of processes collide on the way that the default plan
// gives them (§5.3, figure 11), and [Cases] are the networks and plans that it is run on.
//
// Nothing in here knows the results. What the paper's network does comes out of queues that fill
// up, switches that flood, and hosts that send again what was lost; docs/simulation.md has the
// numbers, beside the paper's.
package vbft
