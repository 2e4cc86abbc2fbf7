// Package engine runs schedules on real memory: over TCP between hosts, over shared memory
// between processes, and over plain memory between the ranks of one process.
//
// A Group is a rank's membership: who it is, how many there are, and the connections to the
// others. Join makes one across processes; Local makes several within one. A schedule and an
// operation are prepared once and run often:
//
//	g, err := engine.Join(ctx, engine.Config{Rank: rank, Size: 4, Meet: "10.0.0.1:29500"})
//	call, err := g.Prepare(s, coll.Op{Kind: coll.AllReduce, Bytes: 1 << 20})
//	err = call.Bind(engine.Buffers{Send: grads, Recv: grads})
//	run, err := call.Run(ctx)
//
// All ranks prepare the same calls in the same order; they may start them in any order. A
// prepared call allocates nothing when it runs.
//
// Buckets reduce gradients while a backward pass goes on.
//
// # How it runs
//
// One goroutine at a time drives a group: it moves bytes of all connections and steps of all
// lanes, without a thread or a goroutine a lane, spins briefly when there is nothing to do and
// then sleeps in the kernel. Sends are posted and finish by themselves; an op that would
// overwrite what is still being sent follows the send byte by byte, or waits. A rank that can
// do nothing else reads messages before their time and puts them aside, so a queue holds as
// many as a schedule may ask for, and no schedule of ours gets stuck.
//
// Among ranks of one host, collectives in which everybody talks to everybody (direct, one_shot,
// and a binomial broadcast) need no messages where the vectors are short or lie in memory from
// Alloc: ranks say on pages of shared memory how far they are and take what they need from where
// it lies; of an all-reduce each adds up its share and writes it into all results.
//
// # Trust and faults
//
// Every connection begins with a challenge that proves the job's secret on both sides, and with
// what the rank was told to do (Config.Work). What fails it is refused and counted, and the job
// goes on; Config.OnRefusal hears of it. Every rank keeps a control connection to rank 0 and says
// on it, several times within Config.Timeout, that it lives and what it is doing. A rank that dies,
// falls silent, is cut off or leaves while others wait for it is named to all others in a PeerError
// within that time. A group that has failed refuses further calls.
//
// A rank that knows the secret may still be in the wrong hands. What ranks say is decoded once into
// values within the group's bounds; what cannot be, or has no place in that state, ends the group
// with an error that names the rank. Config.MayDial bounds where a rank connects. Memory of a process
// is mapped over links alone whose two sides have proven, when they met, that they share a host.
//
// With Config.TLS both sides of every connection show certificates, and nobody between them can
// read along.
//
// # Stability
//
// The package is not promised: names may change between releases. What ranks say to each other changes
// with the version of the protocol, and ranks of different versions refuse each other.
package engine
