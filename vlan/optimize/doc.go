// Package optimize finds the plan that spreads a traffic best over the paths of a network.
//
// [Plan] is the whole interface: network, traffic and present plan in; better plan and [Report]
// out.
//
// # Goal
//
// A plan is better than another if, in this order,
//
//   - its worst link is lower: the link direction with the highest utilisation (load over rate);
//   - the sum of the squares of all utilisations is lower;
//   - fewer pairs differ from the present plan.
//
// Cables to hosts do not count, as no choice of VIDs changes their load.
//
// # Method
//
// The problem is NP-hard: with two VIDs between two switches it is the partition of a set. Small
// problems, of some ten pairs, are solved by branch and bound, and proved. Otherwise the search
// begins at the best of three plans:
//
//   - the present plan;
//   - the present plan, and a greedy one (the largest pair first, each where the sum of squares
//     grows least), both improved from the hosts inwards: first as if only the links at the ends of
//     paths held traffic back, then the links behind these as well, and so on.
//
// The search moves single pairs off the worst link, then chains of pairs (a pair takes a VID, a
// pair in its way takes another one, and so on, until none is in the way), then single pairs for
// the sum of squares. It restarts from nearby plans until the worst link is at its lower bound or
// the effort is used up. Random choices come from a fixed seed: equal arguments give equal plans.
//
// On a fat tree of two levels the VIDs of the pairs colour the edges of a graph of leaves: edges of
// one colour at one leaf share a link. If each pair talks one way, the graph is bipartite, and by
// König's theorem each of n equal pairs of a leaf can have its own of k VIDs, or ⌈n/k⌉ pairs share
// one. Chains that alternate between two VIDs are Kempe's, which prove that. Pairs that talk both
// ways may not reach ⌈n/k⌉ (Vizing, Shannon).
//
// Source: VFREC §2.4, §3.1 leave the method open.
package optimize
