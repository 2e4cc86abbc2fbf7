// Package fleet holds the messages between the nodes of a fleet and their server:
// events that are kept, heartbeats that are not, and orders to measure; and the
// documents in which a server shows what it made of them.
//
// There is one truth: a stream to which every node and the server append Events,
// each under its own name with numbers that go up by one. Everything that is
// shown is a view folded from that stream and can be folded again. A Beat means
// that a node lives and how busy it is; nobody keeps it. An Order asks for a
// measurement; the server cuts it into Parts, one for each node that takes part,
// and a node does a Part or answers why not. A Part names measurements that the
// agent knows, with bounds on time and rate: there is nothing in it that an agent
// would run as a program.
//
// The package knows no transport: fleet/bus carries the messages over NATS,
// fleet/agent is a node, fleet/hub the server. What decodes here is checked and
// bounded, for it comes from other machines.
//
// The Go names may change; what is stored and sent stays readable.
package fleet
