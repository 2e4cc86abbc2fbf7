package sim

// Mechanisms are parts of the model that can be left out, to see what each is worth on
// machines that the figures were not fitted on.
type Mechanisms uint32

// Mechanisms.
const (
	LaunchMode  Mechanisms = 1 << iota // who makes the calls, and how they are timed
	SwitchPairs                        // two GPUs and two NICs behind one PCIe switch of an HGX A100
	RootedLoops                        // calls of a rooted collective overlap in a queue of them
	HostCopies                         // copies through host memory are slower than those to a peer
	RackDomains                        // switches of a rack of trays are farther than those of a server
	HostMemory                         // host memory by generation, and that of another socket
	// NCCL's rules about peers and networks inside of a node decide how GPUs reach each other
	PeerRules
	StoreForward // a message is whole before a NIC sends it
	SwitchChunks // chunks of data that switches reduce, and how closely they follow each other
	SimpleStart  // calls by protocol Simple begin later than others
)

// Has tells whether all of some mechanisms are among m.
func (m Mechanisms) Has(some Mechanisms) bool { return m&some == some }
