package counter

import (
	_ "embed"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

// Kind is what a counter that rises says.
type Kind string

// Kinds.
const (
	Link    Kind = "link"    // the cable, transceiver or port is bad
	Loss    Kind = "loss"    // packets are lost or sent again on the way
	Pause   Kind = "pause"   // the network does not keep up and holds this host
	Slow    Kind = "slow"    // this host does not keep up and holds the network
	Host    Kind = "host"    // the host or driver does not take what arrives
	Program Kind = "program" // requests that the other side refuses
	Lane    Kind = "lane"    // bits of one lane, before correction
	// packets meet congestion, and senders are told to slow down: ordinary, unless peers have far fewer
	Marks   Kind = "marks"
	Unready Kind = "unready" // who this host sends to had no buffer ready, and it sent again
)

// Place is where a counter is read.
type Place string

// Places.
const (
	Port      Place = "port"      // ports/N/counters of an RDMA device
	Transport Place = "transport" // ports/N/hw_counters
	Net       Place = "net"       // statistics of a network interface
	Ethtool   Place = "ethtool"   // ethtool -S
)

// Counter is one counter that stands for something wrong.
type Counter struct {
	Name  string `csv:"name"`
	Kind  Kind   `csv:"kind"`
	Place Place  `csv:"place"`
	Says  string `csv:"says"`
	// Hourly is the rate per hour below which it is ordinary: chosen from what healthy
	// machines of the corpus show and from the size of a real fault, not from a standard. An
	// event of a link matters from the second on; lost packets only by the thousand.
	Hourly float64 `csv:"hourly"`
	Source string  `csv:"source"`
	// Also are beginnings of other spellings, lower case: of other tools and drivers.
	Also []string `csv:"also,optional"`
}

//go:embed data/counters.csv
var countersCSV string

// all is grouped by place; names of a place are unique. The number of a priority
// or lane is left out of a name.
var all = sync.OnceValue(func() []Counter {
	return csvtable.Must[Counter]("internal/counter/data/counters.csv",
		countersCSV)
})

// In are the names of the counters of a place, in the order of the list.
func In(p Place) []string {
	var list []string
	for _, c := range all() {
		if c.Place == p {
			list = append(list, c.Name)
		}
	}
	return list
}

// Find is the counter of a name as tools print it: any case, with the number of a priority or
// lane in it, with the prefix of an end ("A."), of a queue ("[0]: ") or of a virtual port. It is
// nil for a name that is no trouble.
func Find(name string) *Counter {
	name = plain(name)
	if c := byName()[name]; c != nil {
		return c
	}
	for i := range all() {
		for _, a := range all()[i].Also {
			if strings.HasPrefix(name, a) {
				return &all()[i]
			}
		}
	}
	return nil
}

var byName = sync.OnceValue(func() map[string]*Counter {
	m := map[string]*Counter{}
	for i := range all() {
		m[strings.ToLower(all()[i].Name)] = &all()[i]
	}
	return m
})

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
