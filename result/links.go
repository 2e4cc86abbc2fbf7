package result

// Links are those of hosts on which a run does the same, link by link, or those of
// the network where no host is named.
type Links struct {
	Hosts []string
	Uses  []LinkUse // busiest first
}

// LinkUse is how busy links are that carry equally much, each of them.
type LinkUse struct {
	Use // of one of them; Where is empty
	// Which names them with their direction by the devices at their ends: gpu0→nvswitch0,
	// nic0→network, network→nic0, leaf0→above, above→leaf0. What is copied through host memory
	// on its way has the same name and the kind ByHost; memory of GPUs' own copies is numa0.
	Which  []string
	Cables int  // that carry it together, of uplinks; 0 is one
	Tight  bool // it limits the run
}
