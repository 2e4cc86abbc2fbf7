// Package fleet holds what the nodes of a fleet and their server say to each
// other: news that is kept, beats that are not, and orders to measure.
//
// There is one truth: a stream to which every node and the server append News,
// each under its own name with numbers that go up by one. Everything that is
// shown is a view folded from that stream and can be folded again. Beats say
// that a node lives and how busy it is; nobody keeps them. An Order asks for a
// measurement; the server cuts it into Parts, one for each node that takes part,
// and a node does a Part or says why not. A Part names measurements that the
// agent knows, with bounds on time and rate: there is no word in it that an agent
// would run as a program.
//
// The package knows no transport: fleet/bus carries the words over NATS,
// fleet/agent is a node, fleet/hub the server. What decodes here is checked and
// bounded, for it comes from other machines.
package fleet
