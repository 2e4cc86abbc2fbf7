package doctor

import (
	"slices"
	"testing"

	"busbar.dev/finding"
)

// A host whose receive queues are full drops and pauses by itself: neither cable nor fabric. With pauses of a priority
// or retransmissions the fabric may be.
func TestHostThatDropsWhatItReceives(t *testing.T) {
	const own = "NIC statistics:\n     rx_packets: 9100\n     rx_out_of_buffer: 1200300400\n     tx_pause_ctrl_phy: " +
		"4455667\n" +
		"     rx_discards_phy: 8123456789\n"
	for text, want := range map[string][]string{
		own:                                     {"host-overrun"},
		own + "     out_of_sequence: 4000100\n": {"host-overrun", "roce-loss"},
	} {
		var ids []string
		for _, f := range examine(t, text).Findings {
			if f.ID == "roce-loss" || f.Severity > finding.Note && f.ID != "nic-none" {
				ids = append(ids, f.ID)
			}
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) {
			t.Errorf("%q: %v, want %v", text, ids, want)
		}
	}
}
