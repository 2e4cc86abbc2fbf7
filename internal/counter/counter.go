package counter

import "strings"

// Kind is what a counter that rises says.
type Kind int

// Kinds.
const (
	Link    Kind = iota + 1 // the cable, transceiver or port is bad
	Loss                    // packets are lost or sent again on the way
	Pause                   // somebody cannot keep up, and the others are held
	Host                    // the host or driver does not take what arrives
	Program                 // requests that the other side refuses
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
	// Also are other spellings: of other tools, and beginnings of names with a number in them.
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

// Names are all spellings of the counters of some kinds, lower case.
func Names(kinds ...Kind) []string {
	var list []string
	for i := range all {
		for _, k := range kinds {
			if all[i].Kind == k {
				list = append(append(list, strings.ToLower(all[i].Name)), all[i].Also...)
			}
		}
	}
	return list
}

// Find is the counter of a name as tools print it: any case, with the prefix of an end
// ("A."), of a queue ("[0]: ") or of a virtual port. A name without a counter is nil, and
// so is one that is no trouble.
func Find(name string) *Counter {
	name = strings.ToLower(name)
	if i := strings.LastIndexAny(name, ". "); i >= 0 {
		name = name[i+1:]
	}
	name = strings.TrimPrefix(name, "vport_")
	for i := range all {
		if name == strings.ToLower(all[i].Name) {
			return &all[i]
		}
	}
	name = strings.TrimSuffix(name, "counter")
	for i := range all {
		for _, a := range all[i].Also {
			if name == a || strings.HasPrefix(name, a) && len(a) > 6 {
				return &all[i]
			}
		}
	}
	return nil
}
