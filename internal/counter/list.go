package counter

import "math"

// paused is a hundredth of an hour in microseconds.
const paused = 36e6

// all is grouped by place; names of a place are unique. The number of a priority
// or lane is left out of a name.
var all = []Counter{
	{
		"symbol_error", Link, Port, "minor link errors: symbols that could not be read on a lane", 20, abi,
		[]string{"symbolerror"},
	},
	{
		"link_error_recovery", Link, Port, "the link recovered from errors by training again", 2, abi,
		[]string{"linkerrorrecovery"},
	},
	{"link_downed", Link, Port, "the link fell and could not recover", 2, abi, []string{"linkdowned"}},
	{
		"port_rcv_errors", Link, Port, "packets received with errors: bad CRC, malformed, buffer overrun", 20, abi,
		[]string{"portrcverrors"},
	},
	{
		"port_rcv_remote_physical_errors", Loss, Port, "packets that another link had marked bad", 1000, abi,
		[]string{"portrcvremotephysical"},
	},
	{
		"port_rcv_switch_relay_errors", Loss, Port, "packets that the switch could not forward; multicast counts here too",
		10000, abi, nil,
	},
	{"port_rcv_constraint_errors", Program, Port, "packets received against a partition key or version", 100, abi, nil},
	{"port_xmit_constraint_errors", Program, Port, "packets not sent for a partition key or version", 100, abi, nil},
	{
		"port_xmit_discards", Loss, Port, "packets not sent because the port was down or congested", 1000, abi,
		[]string{"portxmitdiscards"},
	},
	{
		"local_link_integrity_errors", Link, Port, "local physical errors passed their threshold", 2, abi,
		[]string{"locallinkintegrity", "local_link_integrity"},
	},
	{
		"excessive_buffer_overrun_errors", Host, Port, "overruns of buffers passed their threshold: flow control failed", 2,
		abi,
		[]string{"excessivebufferoverrun"},
	},
	{"VL15_dropped", Host, Port, "management packets dropped for want of buffers", 1000, abi, []string{"vl15dropped"}},

	{"out_of_sequence", Loss, Transport, "packets that came out of order: one before was lost", 1000, mlx5RoCE, nil},
	{"packet_seq_err", Loss, Transport, "the other side asked for lost packets again", 1000, abi, nil},
	{
		"out_of_buffer", Loss, Transport, "packets dropped because no receive was posted", 10000, abi,
		[]string{"rx_out_of_buffer"},
	},
	{"implied_nak_seq_err", Loss, Transport, "an acknowledgement showed that an earlier answer was lost", 1000, abi, nil},
	{"local_ack_timeout_err", Loss, Transport, "no acknowledgement came in time; packets were sent again", 100, abi, nil},
	{
		"rnr_nak_retry_err", Unready, Transport, "the host that it sends to had no receive buffer ready, and it sent again",
		10000, abi, nil,
	},
	{"duplicate_request", Host, Transport, "requests that came twice, sent again by the other side", 10000, abi, nil},
	{"req_remote_access_errors", Program, Transport, "requests refused by the other side for access", 100, abi, nil},
	{"req_remote_invalid_request", Program, Transport, "requests refused by the other side as invalid", 100, abi, nil},
	{"resp_remote_access_errors", Program, Transport, "requests refused here for access", 100, abi, nil},
	{"resp_local_length_error", Program, Transport, "messages longer than their receive", 100, abi, nil},
	{"req_transport_retries_exceeded", Host, Transport, "a transfer was given up after all retries", 2, mlx5, nil},
	{
		"req_rnr_retries_exceeded", Unready, Transport,
		"a transfer was given up because the receiver never had a buffer ready", 2, mlx5, nil,
	},
	{"roce_adp_retrans", Loss, Transport, "adaptive retransmissions of RoCE", 1000, mlx5RoCE, nil},
	{"roce_adp_retrans_to", Loss, Transport, "time-outs of adaptive retransmission of RoCE", 100, mlx5RoCE, nil},
	{"roce_slow_restart", Loss, Transport, "slow restarts of RoCE after loss", 1000, mlx5RoCE, nil},
	{"roce_slow_restart_trans", Loss, Transport, "changes to slow restart of RoCE", 1000, mlx5RoCE, nil},
	{"rx_icrc_encapsulated", Loss, Transport, "RoCE packets with a bad checksum", 20, abi, nil},
	{"rx_prio_discards", Loss, Transport, "packets of a priority dropped for want of buffers", 10000, mlx5, nil},
	{
		"rp_cnp_handled", Marks, Transport, "congestion notifications received: what this host sends meets congestion", 1e6,
		abi, nil,
	},
	{
		"np_cnp_sent", Marks, Transport, "congestion notifications sent: what comes to this host meets congestion", 1e6, abi,
		nil,
	},
	{"np_ecn_marked_roce_packets", Marks, Transport, "packets that came with a congestion mark", 1e6, abi, nil},
	{
		"rx_cnp_pkts", Marks, Transport, "congestion notifications received: what this host sends meets congestion", 1e6,
		bnxt, nil,
	},
	{
		"tx_cnp_pkts", Marks, Transport, "congestion notifications sent: what comes to this host meets congestion", 1e6, bnxt,
		nil,
	},
	{"rx_ecn_marked_pkts", Marks, Transport, "packets that came with a congestion mark", 1e6, bnxt, nil},
	{"to_retransmits", Host, Transport, "packets sent again after a time-out", 100, bnxt, nil},
	{"seq_err_naks_rcvd", Host, Transport, "the other side asked for lost packets again", 1000, bnxt, nil},
	{"max_retry_exceeded", Host, Transport, "a transfer was given up after all retries", 2, bnxt, nil},
	{
		"rnr_naks_rcvd", Unready, Transport, "the host that it sends to had no receive buffer ready, and it sent again",
		10000, bnxt, nil,
	},
	{"missing_resp", Host, Transport, "answers that did not come", 100, bnxt, nil},
	{"rx_roce_discard_pkts", Host, Transport, "RoCE packets dropped on arrival", 10000, bnxt, nil},
	{"rx_roce_error_pkts", Host, Transport, "RoCE packets received with errors", 20, bnxt, nil},
	{"tx_roce_discard_pkts", Host, Transport, "RoCE packets dropped before sending", 10000, bnxt, nil},
	{"tx_roce_error_pkts", Host, Transport, "RoCE packets sent with errors", 20, bnxt, nil},
	{"retransSegs", Host, Transport, "segments sent again", 10000, irdma, nil},
	{"rxVlanErrors", Host, Transport, "packets of an unknown VLAN", 10000, irdma, nil},
	{"ip4InDiscards", Host, Transport, "packets dropped on arrival", 10000, irdma, nil},
	{"ip4OutDiscards", Host, Transport, "packets dropped before sending", 10000, irdma, nil},
	{"rx_drops", Host, Transport, "packets dropped on arrival", 10000, efa, nil},
	{"rdma_read_wr_err", Program, Transport, "reads that failed", 100, efa, nil},
	{"rdma_write_wr_err", Program, Transport, "writes that failed", 100, efa, nil},
	{"retrans_pkts", Host, Transport, "packets sent again", 10000, efa, nil},
	{"retrans_timeout_events", Host, Transport, "retransmissions after a time-out", 100, efa, nil},
	{"impaired_remote_conn_events", Host, Transport, "connections whose other side became slow", 10, efa, nil},
	{"unresponsive_remote_events", Host, Transport, "connections whose other side did not answer", 2, efa, nil},

	{"rx_errors", Host, Net, "packets received with errors, of all sorts", 1000, statABI, nil},
	{"tx_errors", Host, Net, "packets not sent because of errors", 1000, statABI, nil},
	{
		"rx_dropped", Host, Net, "packets that the kernel dropped on arrival; unknown protocols count here too", 100000,
		statABI, nil,
	},
	{"tx_dropped", Host, Net, "packets that the kernel dropped before sending", 10000, statABI, nil},
	{"rx_crc_errors", Link, Net, "frames with a bad checksum", 20, statABI, nil},
	{"rx_frame_errors", Host, Net, "frames out of alignment", 20, statABI, nil},
	{"rx_fifo_errors", Host, Net, "overruns of the receive queue", 10000, statABI, nil},
	{"rx_length_errors", Host, Net, "frames too long or too short: an MTU that differs", 1000, statABI, nil},
	{"rx_missed_errors", Host, Net, "frames that found no buffer", 10000, statABI, nil},
	{"rx_over_errors", Host, Net, "overruns of the receiver", 10000, statABI, nil},
	{"tx_carrier_errors", Host, Net, "frames not sent because there was no carrier", 20, statABI, nil},
	{"tx_aborted_errors", Host, Net, "frames given up while sending", 1000, statABI, nil},
	{"tx_fifo_errors", Host, Net, "underruns of the transmit queue", 1000, statABI, nil},
	{"tx_heartbeat_errors", Host, Net, "heartbeats that were lost", 1000, statABI, nil},
	{"tx_window_errors", Host, Net, "late collisions", 1000, statABI, nil},

	{"rx_discards_phy", Loss, Ethtool, "packets dropped for want of buffers on the port", 10000, mlx5, nil},
	{"tx_discards_phy", Loss, Ethtool, "packets dropped before sending, mostly for want of credit", 10000, mlx5, nil},
	{
		"rx_prio_buf_discard", Loss, Ethtool, "packets of a priority dropped for want of the host's buffers", 10000, mlx5,
		nil,
	},
	{"rx_prio_cong_discard", Loss, Ethtool, "packets of a priority dropped for congestion of the host", 10000, mlx5, nil},
	{
		"outbound_pci_buffer_overflow", Loss, Ethtool, "packets dropped because PCIe did not take them fast enough", 10000,
		mlx5, nil,
	},
	{"rx_pause_ctrl_phy", Pause, Ethtool, "pause frames received", 1e6, mlx5, nil},
	{"tx_pause_ctrl_phy", Slow, Ethtool, "pause frames sent: this host does not keep up", 1e6, mlx5, nil},
	{
		"tx_pause_storm_warning_events", Slow, Ethtool, "this host held the network for too long", 2, mlx5,
		[]string{"tx_pause_storm"},
	},
	{"rx_global_pause", Pause, Ethtool, "pause frames received", 1e6, mlx5, nil},
	{"rx_global_pause_duration", Pause, Ethtool, "microseconds for which the network held this host", paused, mlx5, nil},
	{"tx_global_pause", Slow, Ethtool, "pause frames sent: this host does not keep up", 1e6, mlx5, nil},
	{"tx_global_pause_duration", Slow, Ethtool, "microseconds for which this host held the network", paused, mlx5, nil},
	{"rx_prio_pause", Pause, Ethtool, "pause frames of a priority (PFC) received", 1e6, mlx5, nil},
	{
		"rx_prio_pause_duration", Pause, Ethtool, "microseconds for which the network held a priority of this host", paused,
		mlx5, nil,
	},
	{"tx_prio_pause", Slow, Ethtool, "pause frames of a priority (PFC) sent: this host does not keep up", 1e6, mlx5, nil},
	{
		"tx_prio_pause_duration", Slow, Ethtool, "microseconds for which this host held a priority of the network", paused,
		mlx5, nil,
	},
	{"rx_pause_frames", Pause, Ethtool, "pause frames received", 1e6, bnxtEth, nil},
	{"tx_pause_frames", Slow, Ethtool, "pause frames sent: this host does not keep up", 1e6, bnxtEth, nil},
	{"rx_pfc_ena_frames_pri", Pause, Ethtool, "pause frames of a priority (PFC) received", 1e6, bnxtEth, nil},
	{
		"tx_pfc_ena_frames_pri", Slow, Ethtool, "pause frames of a priority (PFC) sent: this host does not keep up", 1e6,
		bnxtEth, nil,
	},
	{
		"pfc_pri_rx_duration_us", Pause, Ethtool, "microseconds for which the network held a priority of this host", paused,
		bnxtEth, nil,
	},
	{
		"pfc_pri_tx_duration_us", Slow, Ethtool, "microseconds for which this host held a priority of the network", paused,
		bnxtEth, nil,
	},
	{"rx_fcs_err_frames", Link, Ethtool, "frames with a bad checksum on the wire", 20, bnxtEth, nil},
	{"link_xoff_rx", Pause, Ethtool, "pause frames received", 1e6, iceEth, nil},
	{"link_xoff_tx", Slow, Ethtool, "pause frames sent: this host does not keep up", 1e6, iceEth, nil},
	{"rx_priority_xoff", Pause, Ethtool, "pause frames of a priority (PFC) received", 1e6, iceEth, nil},
	{
		"tx_priority_xoff", Slow, Ethtool, "pause frames of a priority (PFC) sent: this host does not keep up", 1e6, iceEth,
		nil,
	},
	{"rx_flow_control_xoff", Pause, Ethtool, "pause frames received", 1e6, ixgbeEth, nil},
	{"tx_flow_control_xoff", Slow, Ethtool, "pause frames sent: this host does not keep up", 1e6, ixgbeEth, nil},
	{"rx_symbol_err_phy", Link, Ethtool, "symbols that could not be read", 20, mlx5, []string{"rx_symbol_err"}},
	{"rx_crc_errors_phy", Link, Ethtool, "frames with a bad checksum on the wire", 20, mlx5, nil},
	{
		"rx_err_lane_phy", Lane, Ethtool, "bits that were wrong before the line code corrected them: ordinary", math.Inf(1),
		mlx5, nil,
	},
	{"link_down_events_phy", Link, Ethtool, "falls of the link", 2, mlx5, nil},
	{
		"rx_pcs_symbol_err_phy", Link, Ethtool, "symbol errors that the line code could not correct", 20, mlx5,
		[]string{"rx_pcs_symbol_err"},
	},
	{"rx_fec_uncorrectable", Link, Ethtool, "blocks that forward error correction could not mend", 20, mlx5, nil},
}
