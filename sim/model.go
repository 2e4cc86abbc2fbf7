package sim

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Model is what a spec sheet does not say: how much of a link's rate data gets,
// and what a protocol costs. NCCL, Gloo-like sockets and our own engine have one
// each; calibration changes figures of one.
type Model struct {
	Name string
	// Share is the part of a link's rate that data gets, by kind; NICs by the family
	// of their network. 0 is 1.
	Share   [nKinds]float64
	NICs    [nNets]float64
	Sockets unit.Rate // at most through a port of plain Ethernet, by kernel sockets; 0 is no limit
	Wire    Wire
	Staging unit.Rate // through the memory of a NUMA domain, both copies counted once
	Memory  unit.Rate // line rate of the memory that Staging and BounceFar are for, which go with it; 0: the same for all
	// Bounce is what a NIC gets through host memory in one direction where it cannot reach the GPU, BounceFar the same
	// where the GPU is on another socket, and BounceEFA by EFA, wherever the GPU is.
	Bounce, BounceFar, BounceEFA unit.Rate
	// SharedNIC is the rate of a port that GPUs of the node share over that of one's own; 0 is no limit.
	SharedNIC float64
	// Stored says that a message is whole before a NIC sends it.
	Stored bool
	// Through is the share for data that a switch reduces or spreads.
	Through float64
	// Fabric is the latency that the family of a network adds to a hop, and Crowd the
	// part of it that it adds once more where the threads behind it serve many channels.
	Crowd  float64
	Proxy  unit.Time // what the host does about a message of every further channel where it sends by sockets
	Fabric [nNets]unit.Time
	// Origin says where the figures come from.
	Origin string
}

// Wire is a protocol: how data travels between two ranks in one channel.
type Wire struct {
	Name   string
	Factor float64   // bytes on the wire for a byte of data; 0 is 1
	Launch unit.Time // before anything moves
	// Issue is how long the host takes to make the calls of all GPUs that one thread serves;
	// no call takes less.
	Issue  unit.Time
	Hop    [nHops]unit.Time // latency of a message
	Slice  unit.Time        // handing over one slice
	Slices int              // a message is cut into; 0 is 1
	// Ramp is what long transfers lose because the threads reach their full rate only
	// after a while, of the order of RampOver.
	Ramp, RampOver unit.Time
	// Own is the work on a rank's own part, in messages: copying its block beside
	// sending it, adding the last block without sending it on.
	Own float64
	// Last is what a loop loses by the step in which a rank has something to do and
	// nothing to send, in messages of the busiest resource.
	Last float64
	// Peer is the work for every further peer that a rank sends to at once, and Spread
	// how many of them have channels of their own; 0 is 1.
	Peer   unit.Time
	Spread float64
	// Lane is what the threads of one channel of one rank can send; 0 is no limit.
	Lane unit.Rate
	// Chunk is the most that one message carries; what is larger goes round again.
	Chunk unit.Bytes
	// Slots is how many messages a buffer holds.
	Slots float64
	// Queued says that calls of a rooted collective follow each other: the root begins the
	// next one while the last ranks are still at this one, so that nobody waits for a
	// pipe to fill.
	Queued bool
	// Ladder are the most bytes of a message by what a channel has to send in all, from
	// small to large; it takes the place of Chunk, Least and Want.
	Ladder []ChunkStep
	// Turn is the part of a reduction's way through a switch that the next block of a channel waits for.
	Turn float64
	// Overlap says that threads of their own do every stage, so that stages of one
	// lane overlap between loops too and a loop does not wait for the messages of the
	// one before.
	Overlap bool
	// Least and Want let messages shrink, down to Least, until there are Want of them
	// to keep a pipe full.
	Least unit.Bytes
	Want  float64
}

// ChunkStep is a step of Wire.Ladder: up to Below bytes a channel sends messages of Chunk.
type ChunkStep struct{ Below, Chunk float64 }

func (m *Model) share(k Kind, net cluster.NetKind) float64 {
	s := m.Share[k]
	if k == NIC {
		if v := m.NICs[netAt(net)]; v > 0 {
			s = v
		}
	}
	if s <= 0 {
		return 1
	}
	return s
}

// Stream is what messages one after the other get from the memory of a host through a port and the slot of its NIC; a
// slot of 0 is unknown.
func (m *Model) Stream(port, slot unit.Rate, net cluster.NetKind) unit.Rate {
	r := port * unit.Rate(m.share(NIC, net))
	if slot > 0 {
		r = min(r, slot*unit.Rate(m.share(DMA, net)))
	}
	return r
}

// Late is the latency that the family of a network adds to a hop.
func (m *Model) Late(net cluster.NetKind) unit.Time { return m.Fabric[netAt(net)] }

func (w *Wire) factor() float64 {
	if w.Factor <= 0 {
		return 1
	}
	return w.Factor
}

// nNets is the number of families of networks, and one for others.
const nNets = 9

// netAt is where in a table by families one is.
func netAt(k cluster.NetKind) int {
	switch k {
	case cluster.InfiniBand:
		return 1
	case cluster.RoCE:
		return 2
	case cluster.EFA:
		return 3
	case cluster.TCPX:
		return 4
	case cluster.TCPXO:
		return 5
	case cluster.Ethernet:
		return 6
	case cluster.Slingshot:
		return 7
	case cluster.OmniPath:
		return 8
	}
	return 0
}

// isHashed tells families whose switches choose an uplink by the hash of a connection, so that some carry several while
// others idle; the others spread by load.
func isHashed(k cluster.NetKind) bool {
	return k == cluster.RoCE || k == cluster.Ethernet || k == cluster.TCPX || k == cluster.TCPXO
}
