// Package hub is the server's side of a fleet: it folds the stream of events into a
// view, carries out orders, finds what is wrong and tells about it.
//
// The package is not promised: it may change with the program.
//
// All that is true stands in the stream; a View is what follows from it and nothing
// else, so that a hub that was killed knows after a moment what it knew before, and
// several hubs of one bus know the same. Orders are given, cancelled and go on
// by events too: whichever hub is asked says what shall be, and the one that leads
// does it. Beats and progress pass by and are kept in memory only.
//
// A sweep over pairs runs in rounds in which nobody is in two. Every pair is a group
// of its own: a node that dies spoils its pair. A node is in one part at a time,
// whatever orders there are; nodes that are busy are asked again later in the sweep,
// and those that are unreachable, have left or refuse are left out and named.
//
// What comes from nodes is the word of that node alone, within bounds: a node may be in the wrong hands. The bus says
// who sends; a message under another's name is dropped. What a node has, its ports, its counters, its own times, that
// it leaves, and what its drivers report count for itself, and it may be drained for them. Names of other hosts in its
// map and in the records of its jobs become its own. Its texts are told as its words (see says). Of others it speaks in
// pairs that it was measured in and in partners that it did not meet: there it is one voice, and nobody is blamed who
// is not slow or lost with several. Heartbeats and records of jobs drain nobody but their sender.
package hub
