package traffic

import "busbar.dev/unit"

// Run is a communicator and its traffic.
type Run struct {
	Source   string    `json:"source"`
	NCCL     string    `json:"nccl,omitempty"` // its release, as printed
	Comm     string    `json:"comm,omitempty"`
	NRanks   int       `json:"ranks"`
	Hosts    []Host    `json:"hosts"`
	Ranks    []Rank    `json:"members"`
	Channels []Channel `json:"channels"`
	NICs     []NIC     `json:"nics"`
	// Hops are the edges of rings and trees, a direction each.
	Hops       []Hop       `json:"hops"`
	Flows      []Flow      `json:"flows"` // between hosts
	Transports []Transport `json:"transports"`
	// P2P counts connections for send and receive, which are no part of
	// collectives.
	P2P    int     `json:"send_receive_connections"`
	Odd    []Odd   `json:"odd"`
	Others []Other `json:"other_comms,omitempty"`
	// Unseen are ranks of which the log has no line of their own.
	Unseen []int `json:"unseen_ranks,omitempty"`
}

// Host is a machine with ranks of the communicator.
type Host struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
	NICs  []int  `json:"nics"` // of Run.NICs
}

// Rank is a member.
type Rank struct {
	Rank   int    `json:"rank"`
	Host   int    `json:"host"` // of Run.Hosts; -1 unknown
	Device string `json:"device,omitempty"`
	Logged bool   `json:"logged"`
}

// Channel is one of the parts an all-reduce is cut into.
type Channel struct {
	Index int   `json:"index"`
	Ring  []int `json:"ring,omitempty"` // ranks in order
	Cut   bool  `json:"ring_cut,omitempty"`
	// Parent of every rank in the tree: -1 at the root, -2 unknown. Nil: no tree.
	Parent []int `json:"tree_parent,omitempty"`
	// RingLike and TreeLike name the first channel with the same ring or tree.
	RingLike int `json:"ring_like"`
	TreeLike int `json:"tree_like"`
}

// Load is traffic in bytes a byte of the all-reduce.
type Load struct {
	Out float64 `json:"out"`
	In  float64 `json:"in"`
}

func (l *Load) add(part float64, in bool) {
	if in {
		l.In += part
	} else {
		l.Out += part
	}
}

func (l *Load) most() float64 { return max(l.Out, l.In) }

// NIC is a network device of a host.
type NIC struct {
	Host     int       `json:"host"`
	Dev      int       `json:"dev"` // NCCL's number
	Name     string    `json:"name,omitempty"`
	Net      string    `json:"net,omitempty"`
	Rate     unit.Rate `json:"rate_GBps,omitempty"`
	Ring     Load      `json:"ring"`
	Tree     Load      `json:"tree"`
	Channels []int     `json:"channels,omitempty"`
	Ranks    []int     `json:"ranks,omitempty"` // that send or receive through it
	GDR      int       `json:"gdr_hops"`
	Hops     int       `json:"hops"`
	Busiest  bool      `json:"busiest,omitempty"`
}

// Hop is an edge of a channel's ring or tree, in one direction.
type Hop struct {
	Channel   int    `json:"channel"`
	From      int    `json:"from"`
	To        int    `json:"to"`
	Ring      bool   `json:"ring,omitempty"`
	Tree      bool   `json:"tree,omitempty"`
	Transport string `json:"transport,omitempty"` // P2P, SHM, NET; "" not in the log
	Via       string `json:"via,omitempty"`
	Out       int    `json:"out"`             // NIC of Run.NICs, -1: none or unknown
	In        int    `json:"in"`              // likewise
	Proxy     int    `json:"proxy,omitempty"` // rank through whose GPU it sends; -1 none
	GDR       bool   `json:"gdr,omitempty"`
	Line      int    `json:"line,omitempty"` // of the log
}

// Flow is what goes from one host to another through a pair of NICs.
type Flow struct {
	From     int     `json:"from"` // hosts
	To       int     `json:"to"`
	Out      int     `json:"out"` // NICs
	In       int     `json:"in"`
	Channels []int   `json:"channels"`
	Ring     float64 `json:"ring"`
	Tree     float64 `json:"tree"`
}

// Transport counts hops by the way they take.
type Transport struct {
	Via   string `json:"via"`
	Hops  int    `json:"hops"`
	Pairs int    `json:"pairs"` // of ranks
}

// Odd is something worth a look.
type Odd struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Line int    `json:"line,omitempty"`
}

// Other is a communicator of the same log.
type Other struct {
	Comm     string `json:"comm,omitempty"`
	Ranks    int    `json:"ranks"`
	Seen     int    `json:"seen"`
	Channels int    `json:"channels"`
}

// RingPart is what passes each edge of a ring, a byte of the all-reduce.
func (r *Run) RingPart() float64 {
	if r.NRanks < 1 || len(r.Channels) == 0 {
		return 0
	}
	return 2 * float64(r.NRanks-1) / float64(r.NRanks) / float64(len(r.Channels))
}

// TreePart is what passes each edge of a tree in each direction.
func (r *Run) TreePart() float64 {
	if len(r.Channels) == 0 {
		return 0
	}
	return 1 / float64(len(r.Channels))
}
