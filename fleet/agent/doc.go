// Package agent is a node of a fleet: it tells what the node has and how its
// ports do, says that it lives, and measures when it is asked to.
//
// The package is not promised: it may change with the program.
//
// # Nothing lost, nothing twice
//
// What is to be kept goes into a spool on disk first, and counts as said when the
// disk has it. From there it goes to the store as fast as that takes it, and leaves
// the spool when the store has it; see fleet/bus for why nothing gets there twice.
// The agent needs no server to begin or to go on.
//
// # What it can be asked
//
// A fleet.Part names a measurement, its group and its bounds. The agent refuses a
// part while it does another, while the node carries traffic that is not the
// agent's own, and when it would take more memory than it may. There is nothing in
// a part that would be run as a program.
//
// A part is done by a Child: other nodes, which may be in the wrong hands, speak to
// that process alone. Its death is a result of the part. It ends with the agent.
package agent
