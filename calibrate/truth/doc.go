// Package truth holds measured collectives: the written form in which figures of
// real clusters are kept, and the cluster that each was measured on, built from
// its description alone.
//
// A published sweep is a line of JSON, and becomes a result.Sweep where it is read.
// What the source does not state is absent, never zero. Sweeps that cannot be
// described (a collective that is none of ours, a number of NICs that nobody
// stated) say so in words; they are not dropped.
package truth
