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
	Sources []string
	Records int
	// NotUnderstood are records; Unknown samples them by shape, digits as #, most frequent first.
	NotUnderstood int
	Unknown       []Count

	Versions    []Count           // as printed: "2.27.7+cuda13.0"
	AMD         bool              // the library is RCCL
	Hosts       []string          // machines that wrote records, in the order they came
	Processes   int               // that wrote records
	Phantoms    map[string]string // names that were torn or that text ran into, and the hosts they stand for
	Comms       []Comm
	NICs        []NIC
	Connections []Connection

	// Dropped counts what a bound kept out, by kind.
	Dropped map[string]int
}

// Comm is a communicator. The log may show some of its ranks only.
type Comm struct {
	ID     string // commId, since 2.16; "" before
	NRanks int    // 0 unknown
	NNodes int    // as NCCL counts them; 0 unknown
	Ranks  []*Rank
	Rings  []Ring
	Trees  []Tree
}

// Rank is the set-up of a communicator by one of its ranks. Numbers are -1 where
// the log does not say.
type Rank struct {
	Rank, NRanks, NNodes int
	LocalRanks           int
	Comm                 string // pointer in its process
	CommID               string
	Host                 string
	CudaDev, NvmlDev     int
	PCI                  cluster.PCI
	Started, Completed   Pos  // Init START, Init COMPLETE
	Ended                bool // destroyed or aborted
	Rings                []Ring
	Trees                []TreeNode

	plans bool // it printed plans: channels, rings, graphs, a tuning table
}

// Ring is a line "Channel 00/02 : 0 1 2 3".
type Ring struct {
	Channel int
	Ranks   []int
	Cut     bool // NCCL prints the first ranks of long rings only
}

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
}

// Connection is a line "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
// equal ones once.
type Connection struct {
	Comm           string // pointer, where RCCL prints it
	NRanks         int    // likewise; 0 unknown
	Channel, Index int    // Index is -1 where none is printed
	From, To       int
	Dir            string // "send", "receive" or ""
	Via            string // as printed
	Transport      string // P2P, SHM, NET
	Net            string // name of the network
	NetDev         int    // -1 unknown
	Proxy          int    // local rank that sends for this one (PXN), or -1
	GDR            bool
	Host           string // who printed it first
	First          Pos
}
