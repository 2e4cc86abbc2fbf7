package sysfs

import (
	"maps"
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

// counter reads a counter; false when there is none.
func (t *tree) counter(parts ...string) (uint64, bool) {
	v, err := strconv.ParseUint(t.attr(parts...), 10, 64)
	return v, err == nil
}

// addCounters adds the named counters of a folder.
func (t *tree) addCounters(to map[string]uint64, dir string, names []string) {
	if !t.isDir(dir) {
		return
	}
	for _, name := range names {
		if v, ok := t.counter(dir, name); ok {
			to[name] = v
		}
	}
}

// notZero gives a port the named counters of a folder that are not zero.
func (m *machine) notZero(p *cluster.Port, dir string, names []string) {
	all := map[string]uint64{}
	m.addCounters(all, dir, names)
	maps.DeleteFunc(all, func(_ string, v uint64) bool { return v == 0 })
	if p.Counters == nil && len(all) > 0 {
		p.Counters = all
	}
	maps.Copy(p.Counters, all)
}
