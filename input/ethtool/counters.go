package ethtool

import (
	"slices"
	"strconv"
	"strings"
)

// troubles are the parts of counter names that mean errors, discards, pauses and
// lost links, across the drivers of mlx5, bnxt, ice, i40e, ixgbe, igb, ena, gve
// and virtio.
var troubles = []string{
	"err", "drop", "discard", "crc", "miss", "fail", "timeout", "lost", "pause", "pfc_", "out_of_", "no_buf", "nobuf",
	"overrun", "over_", "fifo", "coll", "abort", "carrier", "link_down", "symbol", "xoff", "xon", "stall", "retrans",
	"bad_", "corrupt", "jabber", "undersize", "oversize", "fragment", "unplug", "stuck", "high_temp", "deferred",
}

// harmless are names that hold such a part and mean none of it, and counters of
// bit errors that the line code corrects in ordinary running.
var harmless = []string{"interrupt", "rx_err_lane_", "corrected_bits"}

// isTrouble reports whether a counter should be zero.
func isTrouble(name string) bool {
	name = strings.ToLower(name)
	for _, h := range harmless {
		if strings.Contains(name, h) {
			return false
		}
	}
	if strings.HasSuffix(name, "bytes") || strings.HasSuffix(name, "octets") {
		return false
	}
	return slices.ContainsFunc(troubles, func(t string) bool { return strings.Contains(name, t) })
}

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
	if err != nil || v == 0 || !isTrouble(text[:at]) {
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
