// Package sim prices schedules on a cluster. It knows what a message meets on its
// route (NVLink, PCIe, host memory, NICs shared by GPUs, uplinks) and what a
// protocol adds (latency of a hop, handing over of slices, what the threads of a
// channel can move), and answers how long a collective takes and what limits it.
//
// There are two ways to an answer. Steady reduces a schedule to its busiest links
// and its longest chain of messages, once for all sizes, and takes no longer for a
// hundred thousand nodes than for a hundred: equal nodes are counted once. Exact
// plays every message as a flow among others that share links max-min fairly. Where
// both can run they agree; a property test holds them together.
//
// Time inside is in picoseconds. What a spec sheet does not say is in a Model,
// each figure with its origin; calibration replaces them.
package sim
