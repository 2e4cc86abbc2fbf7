package counter

import "strings"

// Kind is what a counter that rises says.
type Kind int

// Kinds.
const (
	Link    Kind = iota + 1 // the cable, transceiver or port is bad
	Loss                    // packets are lost or sent again on the way
	Pause                   // the network does not keep up and holds this host
	Slow                    // this host does not keep up and holds the network
	Host                    // the host or driver does not take what arrives
	Program                 // requests that the other side refuses
	Lane                    // bits of one lane, before correction
	// packets meet congestion, and senders are told to slow down: ordinary, unless peers have far fewer
	Marks
	Unready // who this host sends to had no buffer ready, and it sent again
)

// Place is where a counter is read.
type Place int

// Places.
const (
	Port      Place = iota + 1 // ports/N/counters of an RDMA device
	Transport                  // ports/N/hw_counters
	Net                        // statistics of a network interface
	Ethtool                    // ethtool -S
)

// Sources of the meanings.
const (
	abi      = "Linux, Documentation/ABI/stable/sysfs-class-infiniband"
	statABI  = "Linux, Documentation/ABI/testing/sysfs-class-net-statistics"
	mlx5     = "Linux, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst"
	mlx5RoCE = "Linux, commit d7fab916374c, IB/mlx5: Expose RoCE accelerator counters"
	bnxt     = "Linux, drivers/infiniband/hw/bnxt_re/hw_counters.c"
	irdma    = "Linux, drivers/infiniband/hw/irdma/verbs.c"
	efa      = "Linux, drivers/infiniband/hw/efa/efa_verbs.c"
	bnxtEth  = "Linux, drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c"
	iceEth   = "Linux, drivers/net/ethernet/intel/ice/ice_ethtool.c"
	ixgbeEth = "Linux, drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c"
)

// Counter is one counter that stands for something wrong.
type Counter struct {
	Name  string
	Kind  Kind
	Place Place
	Says  string
	// Hourly is the rate per hour below which it is ordinary: chosen from what healthy
	// machines of the corpus show and from the size of a real fault, not from a standard. An
	// event of a link matters from the second on; lost packets only by the thousand.
	Hourly float64
	Source string
	// Also are beginnings of other spellings, lower case: of other tools and drivers.
	Also []string
}

// In are the names of the counters of a place, in the order of the list.
func In(p Place) []string {
	var list []string
	for i := range all {
		if all[i].Place == p {
			list = append(list, all[i].Name)
		}
	}
	return list
}

// Find is the counter of a name as tools print it: any case, with the number of a priority or
// lane in it, with the prefix of an end ("A."), of a queue ("[0]: ") or of a virtual port. It is
// nil for a name that is no trouble.
func Find(name string) *Counter {
	name = plain(name)
	if c := byName[name]; c != nil {
		return c
	}
	for i := range all {
		for _, a := range all[i].Also {
			if strings.HasPrefix(name, a) {
				return &all[i]
			}
		}
	}
	return nil
}

var byName = index()

func index() map[string]*Counter {
	m := map[string]*Counter{}
	for i := range all {
		m[strings.ToLower(all[i].Name)] = &all[i]
	}
	return m
}

// numbered are the parts of names that a number follows.
var numbered = []string{"_priority", "_prio", "_pri", "_lane"}

// plain takes away what tools and drivers add to a name.
func plain(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".nic")
	if i := strings.LastIndexAny(name, ". "); i >= 0 {
		name = name[i+1:]
	}
	name = strings.TrimPrefix(name, "vport_")
	for _, part := range numbered {
		i := strings.Index(name, part)
		if i < 0 {
			continue
		}
		i += len(part)
		if rest := strings.TrimLeft(name[i:], "_0123456789"); strings.ContainsAny(name[i:len(name)-len(rest)], "0123456789") {
			return strings.TrimSuffix(name[:i]+"_"+rest, "_")
		}
	}
	return name
}

// Driver tells whether a name of ethtool -S is one to watch: a counter of the whole port that
// stands for something wrong and is not in /sys too.
func Driver(name string) bool {
	c := Find(name)
	if c == nil || c.Kind == Lane || strings.Contains(name, "[") {
		return false
	}
	return c.Place == Ethtool || c.Place == Transport
}
