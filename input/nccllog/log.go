package nccllog

import "busbar.dev/cluster"

// Count is a text, how often it came, and where first.
type Count struct {
	Text  string
	N     int
	First Pos
}

// Log is what one or more logs say.
type Log struct {
	Sources   []string
	Lines     int // of text
	NCCLLines int // lines that hold an INFO or WARN record
	Records   int // more than NCCLLines where newlines were lost
	// Understood and NotUnderstood add up to Records; Unknown samples the latter
	// by shape, digits as #, most frequent first.
	Understood, NotUnderstood int
	Unknown                   []Count

	Versions    []Count // as printed: "2.27.7+cuda13.0"
	Hosts       []Host
	Phantoms    map[string]string // names that were torn or that text ran into, and the hosts they stand for
	Comms       []Comm
	NRanks      map[int]int // records that name a number of ranks
	NNodes      map[int]int // records that name NCCL's number of nodes
	Networks    []Count     // "Using network …": IB, Socket, AWS Libfabric
	NICs        []NIC
	Env         []Env
	Connections []Connection
	Via         []Count // ways of connecting, device numbers as *
	Choices     []Choice
	Notes       []Count // other telling lines, by their text

	Warns      []Record // the first of them
	WarnCount  int      // all
	WarnShapes []Count  // digits as #
	Returns    []Count  // "init.cc:82 -> 3": how an error came up
	Complete   int      // records "Init COMPLETE"

	// Dropped counts what a bound kept out, by kind.
	Dropped map[string]int
}

// Host is a machine that wrote records.
type Host struct {
	Name      string
	Records   int
	Bootstrap string // interface and address of the out-of-band network
	First     Pos
}

// Comm is a communicator. The log may show some of its ranks only.
type Comm struct {
	ID     string // commId, since 2.16; "" before
	NRanks int    // 0 unknown
	NNodes int    // as NCCL counts them; 0 unknown
	Ranks  []*Rank
	Rings  []Ring
	Trees  []Tree
	Channels
	Tuning *Tuning // of the first rank that printed one
	Graphs []Graph
	System *System
}

// Channels is a line "24 coll channels, 24 collnet channels, …"; -1 where it
// names none.
type Channels struct {
	Coll, CollNet, NVLS, P2P, P2PPerPeer int
}

// Rank is the set-up of a communicator by one of its ranks. Numbers are -1 where
// the log does not say.
type Rank struct {
	Rank, NRanks, NNodes  int
	LocalRank, LocalRanks int
	Comm                  string // pointer in its process
	CommID                string
	Host                  string
	PID                   int
	CudaDev, NvmlDev      int
	PCI                   cluster.PCI
	Started, Completed    Pos // Init START, Init COMPLETE
	Destroyed, Aborted    Pos
	Channels
	Rings  []Ring
	Trees  []TreeNode
	Links  []RingLink
	Graphs []Graph
	System *System
	Tuning *Tuning

	cols  []column // of the tuning table at hand
	tree  bool     // inside the system tree
	plans bool     // it printed rings, trees or graphs that are not kept
}

// Ring is a line "Channel 00/02 : 0 1 2 3".
type Ring struct {
	Channel, Channels int
	Ranks             []int
	Cut               bool // NCCL prints the first ranks of long rings only
	At                Pos
}

// RingLink is a line "Ring 00 : 3 -> 0 -> 1" of the GRAPH subsystem.
type RingLink struct{ Channel, Rank, Next int }

// TreeNode is a rank's place in the tree of a channel; Parent is -1 at the root.
type TreeNode struct {
	Channel, Rank, Parent int
	Children              []int
}

// Tree is the tree of a channel: the nodes the log shows, by rank.
type Tree struct {
	Channel int
	Nodes   []TreeNode
}

// NIC is a device a network named, for one host.
type NIC struct {
	Host  string
	Net   string // "IB", "Socket", the plugin's name
	Index int    // in the network's list; -1 unknown
	Name  string // mlx5_0, eth0
	Port  int    // 0 unknown
	Layer string // "IB", "RoCE"
	SHARP bool
	Addr  string // of a socket interface
	PCI   cluster.PCI
	Mbps  int // 0 unknown
	GDR   cluster.Tri
	First Pos
}

// Env is a setting NCCL took from the environment or a file.
type Env struct {
	Name, Value string
	N           int
	Host        string // the first that said so
	First       Pos
}

// Connection is a line "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
// equal ones once.
type Connection struct {
	Comm           string // pointer, where RCCL prints it
	NRanks         int    // likewise; 0 unknown
	Channel, Index int    // Index is -1 where none is printed
	From, To       int
	// FromDev and ToDev are what stands in brackets: a bus id (hexadecimal) up to
	// 2.16, an NVML index since.
	FromDev, ToDev string
	Dir            string // "send", "receive" or ""
	Via            string // as printed
	Transport      string // P2P, SHM, NET, COLLNET
	Net            string // name of the network
	NetDev         int    // -1 unknown
	Proxy          int    // local rank that sends for this one (PXN), or -1
	GDR, Shared    bool
	Host           string // who printed it first
	N              int
	First          Pos

	kind string // Via without device numbers
}

// Choice is what NCCL took for a call: "AllReduce: 8 Bytes -> Algo TREE proto LL
// channel{Lo..Hi}={0..0}".
type Choice struct {
	Op          string // all_reduce; "" up to 2.22
	Bytes       int64
	Algo, Proto string // ring, simple
	Lo, Hi      int    // channels, -1 before 2.24
	MicroSecs   float64
	N           int
	First       Pos
}

// Call is a line "AllReduce: opCount 0 … count 16 datatype 7 …".
type Call struct {
	Op             string
	Count          int64
	Datatype, Redo int
	NRanks         int // 0 unknown
	N              int
	First          Pos
}

// Tuning is NCCL's own estimate, in microseconds and GB/s of algorithm
// bandwidth; 0 GB/s means that NCCL will not take it.
type Tuning struct {
	Cells []Cell
	At    Pos
}

// Cell is one estimate: all_reduce, ring, simple.
type Cell struct {
	Op, Algo, Proto string
	LatencyUS, GBps float64
}

// Graph is a result of NCCL's search: "Pattern 4, crossNic 0, nChannels 1, …".
type Graph struct {
	Pattern, CrossNic, NChannels int
	BwIntra, BwInter             float64
	TypeIntra, TypeInter         string
	SameChannels                 int
	Lines                        [][]string // each channel: NET/0-0 GPU/0-60 NET/0-0
	At                           Pos
}

// System is NCCL's view of a node.
type System struct {
	MaxBw, TotalBw float64
	Tree           []string // as printed, with indentation
	Paths          []Path
	At             Pos
}

// Path is one entry of the table of paths: "NET/0-0 (3/1.2/PHB)".
type Path struct {
	From, To string
	Hops     int
	GBps     float64
	Type     string
}
