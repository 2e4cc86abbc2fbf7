// Package truth holds measured collectives: the written form in which figures of
// real clusters are kept, and the cluster that each was measured on, built from
// its description alone.
//
// A group is a sweep of sizes on one machine with one setting, a line of JSON.
// What the source does not state is absent, never zero. Groups that cannot be
// described (a collective that is none of ours, a number of NICs that nobody
// stated) say so in words; they are not dropped.
package truth
