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
//   - a greedy plan: the largest pair first, each where the sum of squares grows least;
//   - on fat trees, an edge colouring. Leaves are vertices, pairs are edges, VIDs are colours;
//     edges of one colour at one leaf share a link.
//
// If each pair talks one way, the colouring is that of a bipartite graph of senders and receivers.
// By König's theorem each of n equal pairs of a leaf then has its own of k VIDs, or ⌈n/k⌉ pairs
// share one, which is optimal. Pairs that talk both ways are edges of an undirected multigraph,
// where that can be impossible (Vizing, Shannon). They are directed along Euler trails first, so
// that half of them leave each leaf; then at most 2⌈n/2k⌉ share a link, which is at most one above
// ⌈n/k⌉.
//
// From there the search moves single pairs off the worst link, then chains of pairs (a pair takes a
// VID, the pair in its way takes the VID that became free, and so on: Kempe chains in a fat tree),
// then single pairs for the sum of squares. It restarts from nearby plans until the worst link is
// at its lower bound or the effort is used up. Random choices come from a fixed seed: equal
// arguments give equal plans.
//
// Source: VFREC §2.4, §3.1 leave the method open.
package optimize
