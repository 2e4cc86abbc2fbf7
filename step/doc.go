// Package step says how long one training step takes and where the time goes: the tasks of
// package workload priced on a GPU, the collectives of its groups priced by package predict on
// the cluster, both on a timeline as frameworks run them.
package step
