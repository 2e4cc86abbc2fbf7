package sysfs

import (
	"path"
	"strconv"

	"busbar/cluster"
)

// Counters that stand for something wrong. Traffic, waiting for credits
// (port_xmit_wait) and congestion marks are not in these lists: they count on
// every healthy machine. Nor are the completion errors that every job's end
// produces (req_cqe_error and its flush kind).
var (
	// portCounters are in ports/N/counters.
	portCounters = []string{
		"symbol_error", "link_error_recovery", "link_downed",
		"port_rcv_errors", "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
		"port_rcv_constraint_errors", "port_xmit_constraint_errors", "port_xmit_discards",
		"local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped",
	}
	// transportCounters are in ports/N/hw_counters: lost and repeated packets as
	// mlx5, bnxt_re, irdma and efa name them.
	transportCounters = []string{
		"out_of_sequence", "packet_seq_err", "out_of_buffer", "implied_nak_seq_err",
		"local_ack_timeout_err", "rnr_nak_retry_err", "duplicate_request",
		"req_remote_access_errors", "req_remote_invalid_request",
		"resp_remote_access_errors", "resp_local_length_error",
		"req_transport_retries_exceeded", "req_rnr_retries_exceeded",
		"roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_trans",
		"rx_icrc_encapsulated", "rx_prio_discards",
		"to_retransmits", "seq_err_naks_rcvd", "max_retry_exceeded", "rnr_naks_rcvd", "missing_resp",
		"rx_roce_discard_pkts", "rx_roce_error_pkts", "tx_roce_discard_pkts", "tx_roce_error_pkts",
		"retransSegs", "rxVlanErrors", "ip4InDiscards", "ip4OutDiscards",
		"rx_drops", "rdma_read_wr_err", "rdma_write_wr_err", "retrans_pkts", "retrans_timeout_events",
		"impaired_remote_conn_events", "unresponsive_remote_events",
	}
	// netCounters are in net/X/statistics.
	netCounters = []string{
		"rx_errors", "tx_errors", "rx_dropped", "tx_dropped",
		"rx_crc_errors", "rx_frame_errors", "rx_fifo_errors", "rx_length_errors",
		"rx_missed_errors", "rx_over_errors",
		"tx_carrier_errors", "tx_aborted_errors", "tx_fifo_errors", "tx_heartbeat_errors", "tx_window_errors",
	}
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
