// Package calibrate fits the figures of package sim to measurements: all of them
// to published sweeps, which gives sim.Fitted and the error bars of predictions,
// or a few of them to what a user measured on one cluster.
//
// The search goes along one figure after the other, in steps that grow while they
// help and shrink when they do not. It is deterministic, keeps every figure in its
// physical range, and holds figures that no measurement constrains near their
// neighbours: the same figure of the next generation of GPUs, or what is usual.
package calibrate
