// Package result is what comes back when a collective was simulated, run or measured.
//
// A Sweep is one collective over sizes, measured by one tool on the same ranks with the same
// settings. Every format becomes a Sweep where it is read, by one function of its package:
// Read and ReadDocument here for busbar's own, input/nccltests for NVIDIA's, calibrate/truth
// for published points, engine/bench for what it measures itself. Write keeps sweeps in a file;
// docs/format/result.md describes it.
//
// A Run is one simulated or executed call. It may carry the events of every rank and lane; a
// prediction carries what limited it.
package result
