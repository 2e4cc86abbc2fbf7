package ethtool

import (
	"strconv"
	"strings"

	"busbar.dev/internal/counter"
)

// maxCounters bounds the counters kept of one interface; drivers with many queues
// have thousands, of which few are troubles that happened.
const maxCounters = 512

// statistic takes a line of ethtool -S: "rx_crc_errors: 3", "[0]: rx_drops: 1". A
// line of another form is false: the block is over.
func (n *nic) statistic(text string) bool {
	if text == "" {
		return true
	}
	at := strings.LastIndexByte(text, ':')
	if at < 1 || at > 80 {
		return false
	}
	v, err := strconv.ParseUint(strings.TrimSpace(text[at+1:]), 10, 64)
	if c := counter.Find(text[:at]); err != nil || v == 0 || c == nil || c.Kind == counter.Lane {
		return true
	}
	name := short(strings.TrimSpace(text[:at]))
	if n.Counters == nil {
		n.Counters = map[string]uint64{}
	}
	if old, ok := n.Counters[name]; name != "" && (ok || len(n.Counters) < maxCounters) {
		n.Counters[name] = max(v, old)
	}
	return true
}
