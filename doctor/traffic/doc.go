// Package traffic says where the bytes of a communicator go: which ranks talk to
// which, over what, through which NIC, and how much of an all-reduce passes each.
//
// It is made from what NCCL logs about its set-up: rings and trees of every
// channel, and one line for every connection. An all-reduce is cut into as many
// parts as there are channels. Along a ring each rank sends a part 2(n−1)/n times.
// Small ones go along trees, which load NICs less; loads are those of rings.
//
// A log that shows some of the ranks gives some of the picture: what is not known
// is -1 or missing and counted, never made up.
package traffic

import "busbar.dev/unit"

// Run is a communicator and its traffic.
type Run struct {
	Source   string    `json:"source"`
	NCCL     string    `json:"nccl,omitempty"` // its release, as printed
	Comm     string    `json:"comm,omitempty"`
	Comms    int       `json:"comms"` // of the log, this one among them
	NRanks   int       `json:"ranks"`
	Hosts    []Host    `json:"hosts"`
	HostOf   []int     `json:"host_of"` // of every rank; -1 unknown
	Channels []Channel `json:"channels"`
	NICs     []NIC     `json:"nics"` // those of a host together
	Hops     []Hop     `json:"hops"`
	Odd      []Odd     `json:"odd"`
	// Unseen are ranks of which the log has no line of their own.
	Unseen []int `json:"unseen_ranks,omitempty"`
}

// Host is a machine with ranks of the communicator.
type Host struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
}

// Channel is one of the parts an all-reduce is cut into.
type Channel struct {
	Index int   `json:"index"`
	Ring  []int `json:"ring,omitempty"` // ranks in order
	Cut   bool  `json:"ring_cut,omitempty"`
	// Parent of every rank in the tree: -1 at the root, -2 unknown. Nil: no tree.
	Parent []int `json:"tree_parent,omitempty"`
}

// NIC is a network device of a host. Out and In are bytes a byte of the all-reduce.
type NIC struct {
	Host     int       `json:"host"`
	Dev      int       `json:"dev"` // NCCL's number
	Name     string    `json:"name,omitempty"`
	Net      string    `json:"net,omitempty"`
	Rate     unit.Rate `json:"rate_GBps,omitempty"`
	Out      float64   `json:"out"`
	In       float64   `json:"in"`
	Channels []int     `json:"channels,omitempty"`
	Ranks    []int     `json:"ranks,omitempty"` // that send or receive through it
	GDR      int       `json:"gdr_hops"`
	Hops     int       `json:"hops"`
}

// Load is the traffic of the busier direction.
func (n *NIC) Load() float64 { return max(n.Out, n.In) }

// Hop is an edge of a channel's ring or tree, in one direction.
type Hop struct {
	Channel   int    `json:"channel"`
	From      int    `json:"from"`
	To        int    `json:"to"`
	Ring      bool   `json:"ring,omitempty"`      // else of a tree alone
	Transport string `json:"transport,omitempty"` // P2P, SHM, NET; "" not in the log
	Via       string `json:"via,omitempty"`
	Out       int    `json:"out"`             // NIC of Run.NICs, -1: none or unknown
	In        int    `json:"in"`              // likewise
	Proxy     int    `json:"proxy,omitempty"` // rank through whose GPU it sends; -1 none
	GDR       bool   `json:"gdr,omitempty"`
	Line      int    `json:"line,omitempty"` // of the log
}

// Odd is something worth a look.
type Odd struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Hops int    `json:"hops,omitempty"` // that it is about
	Line int    `json:"line,omitempty"` // of the first
}
