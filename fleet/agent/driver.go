package agent

import (
	"maps"

	"busbar.dev/input/sysfs"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/nicstat"
)

// mostDriver bounds how many counters of a driver are told of one interface. Those of eight
// priorities, both ways, are some sixty.
const mostDriver = 128

// driverCounters asks the kernel for what a driver counts beyond /sys.
func driverCounters(name string) (map[string]uint64, error) {
	return nicstat.Read(name, counter.Driver, mostDriver)
}

// addDrivers adds them to ports. What /sys has of the same name counts. Many drivers cannot be asked.
func (a *agent) addDrivers(ports []sysfs.PortState) {
	seldomTold := a.ports.looks%seldom != 0
	a.ports.looks++
	for _, p := range ports {
		if a.Driver != nil && !p.RDMA {
			more, _ := a.Driver(p.Name)
			for name, v := range more {
				if _, known := p.Counters[name]; !known {
					p.Counters[name] = v
				}
			}
		}
		maps.DeleteFunc(p.Counters, func(name string, _ uint64) bool { return seldomTold && pausing(name) })
	}
}

// seldom is in how many looks counters of pause frames and congestion marks are told of once. They move all the time
// where the network is lossless; told of every 30 s they would drive out what is worth keeping.
const seldom = 20

// pausing tells whether a counter is one of pause frames or congestion marks.
func pausing(name string) bool {
	c := counter.Find(name)
	return c != nil && (c.Kind == counter.Pause || c.Kind == counter.Slow || c.Kind == counter.Marks)
}
