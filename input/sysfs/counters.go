package sysfs

import (
	"path"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/internal/counter"
)

// The counters that stand for something wrong, by the folder that holds them.
var (
	portCounters      = counter.In(counter.Port)      // ports/N/counters
	transportCounters = counter.In(counter.Transport) // ports/N/hw_counters
	netCounters       = counter.In(counter.Net)       // net/X/statistics
)

// addCounters keeps the named counters that are not zero.
func (m *machine) addCounters(p *cluster.Port, dir string, names []string) {
	if !m.isDir(dir) {
		return
	}
	for _, name := range names {
		v, err := strconv.ParseUint(m.attr(path.Join(dir, name)), 10, 64)
		if err != nil || v == 0 {
			continue
		}
		if p.Counters == nil {
			p.Counters = map[string]uint64{}
		}
		p.Counters[name] = v
	}
}
