package counter

import (
	"strings"
	"testing"
)

// TestFind takes names as sysfs, perfquery, ibqueryerrors and ethtool print them.
func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"symbol_error": "symbol_error", "SymbolErrorCounter": "symbol_error", "A.SymbolErrorCounter": "symbol_error",
		"LinkDownedCounter": "link_downed", "linkdowned": "link_downed", "PortXmitDiscards": "port_xmit_discards",
		"LocalLinkIntegrityErrors": "local_link_integrity_errors", "vl15_dropped": "VL15_dropped",
		"out_of_sequence": "out_of_sequence", "vport_out_of_buffer": "out_of_buffer", "rx_out_of_buffer": "out_of_buffer",
		"rx_prio3_pause": "rx_prio_pause", "tx_prio3_pause": "tx_prio_pause", "rx_prio5_discards": "rx_prio_discards",
		"[0]: rx_drops": "rx_drops", "roce_adp_retrans_to": "roce_adp_retrans_to", "rx_crc_errors_phy": "rx_crc_errors_phy",
		"rx_err_lane_3_phy": "rx_err_lane_phy", "tx_pause_storm_error_events": "tx_pause_storm_warning_events",
		"rx_prio3_pause_duration": "rx_prio_pause_duration", "rx_prio0_buf_discard": "rx_prio_buf_discard",
		"rx_pfc_ena_frames_pri3":  "rx_pfc_ena_frames_pri",
		"pfc_pri3_rx_duration_us": "pfc_pri_rx_duration_us", "link_xoff_rx.nic": "link_xoff_rx",
		"port.link_xoff_tx":      "link_xoff_tx",
		"tx_priority_7_xoff.nic": "tx_priority_xoff", "rx_crc_errors.nic": "rx_crc_errors",
		// These count on healthy machines.
		"rx_prio3_pause_transition": "", "tx_priority_3_xon.nic": "", "rx_priv_flags": "", "rx_prio3_marked": "",
		"rx_prio3_bytes": "", "rx_packets": "", "port_xmit_wait": "", "np_cnp_sent": "np_cnp_sent", "rp_cnp_ignored": "",
		"rx_bytes": "", "": "", "rx_prio": "", "req_cqe_error": "",
	} {
		got := ""
		if c := Find(name); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// TestList: names are unique, and every counter has a meaning, a source and a rate.
func TestList(t *testing.T) {
	kinds := map[Kind]bool{
		Link: true, Loss: true, Pause: true, Slow: true, Host: true, Program: true, Lane: true, Marks: true, Unready: true,
	}
	places := map[Place]bool{Port: true, Transport: true, Net: true, Ethtool: true}
	seen := map[string]bool{}
	for _, c := range all() {
		if seen[c.Name] || c.Says == "" || c.Source == "" || !kinds[c.Kind] || !places[c.Place] || c.Hourly <= 0 {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
		if f := Find(c.Name); f == nil || f.Name != c.Name {
			t.Errorf("%s is not found", c.Name)
		}
		for _, a := range c.Also {
			if a != strings.ToLower(a) || len(a) < 7 {
				t.Errorf("%s: %q", c.Name, a)
			}
		}
	}
}

// TestDriver: of what ethtool -S prints, those of the port are watched that /sys does not have.
func TestDriver(t *testing.T) {
	for name, want := range map[string]bool{
		"rx_prio3_pause": true, "tx_prio3_pause_duration": true, "rx_out_of_buffer": true, "rx_discards_phy": true,
		"roce_adp_retrans":  true,
		"rx_crc_errors_phy": true, "link_xoff_rx.nic": true,
		"rx_crc_errors": false, "rx_dropped": false, "[3]: rx_drops": false, "rx_err_lane_0_phy": false, "rx0_packets": false,
		"": false,
	} {
		if Driver(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
