// Package traffic describes what each node sends to each other node.
//
// A [Matrix] is a traffic matrix: a list of flows. [Pattern] makes those that networks are measured
// with, [Read] reads one from a file, and [Matrix.Load] says what it means for each cable of a
// network.
package traffic
