package ibnet

import (
	"strconv"

	"busbar.dev/internal/lazyre"
)

// noErrors are the traffic counters and the fields that are none. PortXmitWait counts ticks in
// which a port had data and no credit: congestion rather than error, and kept.
var noErrors = lazyre.New(`(Data|Pkts|Select2?|Bytes|Octets)$`)

// maxCounters bounds the counters kept of one port; perfquery has fourteen.
const maxCounters = 64

// count records a counter of a port that should be zero. Counters only grow, so the greater of
// two readings is the later one.
func (p *port) count(name, digits string) {
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v == 0 || noErrors.MatchString(name) {
		return
	}
	if p.counters == nil {
		p.counters = make(map[string]uint64, 4)
	}
	if old, ok := p.counters[name]; ok || len(p.counters) < maxCounters {
		p.counters[name] = max(old, v)
	}
}
