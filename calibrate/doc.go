// Package calibrate fits figures of the model to what a user measured: those of package sim to collectives on one
// cluster, with a curve of what they leave, and those of package step to kernels and training steps on its GPUs.
//
// A figure moves as far as the measurements ask for and as what is known about it allows, in its physical range; a
// figure that they hardly feel hardly moves. tools/fit fits all figures to published sweeps, which gives sim.Fitted and
// the error bars.
package calibrate
