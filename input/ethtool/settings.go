package ethtool

import (
	"slices"
	"strconv"
	"strings"
)

// offloads are the features of ethtool -k whose absence slows TCP: the processor then cuts, joins and sums every
// packet.
var offloads = []string{
	"rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload", "generic-segmentation-offload",
	"generic-receive-offload",
}

// feature takes a line of ethtool -k. What the driver cannot change is "[fixed]" and no setting.
func (n *nic) feature(text string) {
	key, value, ok := strings.Cut(text, ": ")
	if ok && strings.TrimSpace(value) == "off" && slices.Contains(offloads, key) && !slices.Contains(n.off, key) {
		n.off = append(n.off, key)
	}
}

// ring takes a line of ethtool -g: the greatest sizes first, then what is set.
func (d *reader) ring(text string) {
	key, value, _ := strings.Cut(text, ":")
	switch key {
	case "Pre-set maximums", "Current hardware settings":
		d.key = key
	case "RX":
		size, err := strconv.ParseUint(strings.TrimSpace(value), 10, 24)
		if err != nil {
			return
		}
		if d.key == "Pre-set maximums" {
			d.cur.rxRingMax = int(size)
		} else {
			d.cur.rxRing = int(size)
		}
	}
}
