package health

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/sysfs"
)

// TestRDMACounters reads counters of RDMA ports from files as the kernel has them: one that rises far above its peers
// is congestion, loss or an error of the link by what it counts, and what all ports show is no port's own.
func TestRDMACounters(t *testing.T) {
	for name, want := range map[string]string{
		"hw_counters/np_cnp_sent": "congestion-marks", "hw_counters/rp_cnp_handled": "congestion-marks",
		"hw_counters/np_ecn_marked_roce_packets": "congestion-marks",
		"hw_counters/out_of_sequence":            "loss", "hw_counters/packet_seq_err": "loss",
		"hw_counters/rnr_nak_retry_err": "receiver-not-ready", "hw_counters/rnr_naks_rcvd": "receiver-not-ready",
		"hw_counters/local_ack_timeout_err": "loss",
		"hw_counters/roce_adp_retrans":      "loss", "counters/symbol_error": "errors", "counters/link_downed": "errors",
		"counters/port_xmit_wait": "",
	} {
		for _, all := range []bool{false, true} {
			h := New(0)
			var now time.Time
			for k := range 13 { // two hours
				now = began.Add(time.Duration(k) * 10 * time.Minute)
				for i := range 8 {
					v := uint64(0)
					if i == 3 || all {
						v = uint64(k*k) * 2_000_000 // more from hour to hour
					}
					dir := "sys/class/infiniband/mlx5_0/ports/1/"
					ports, err := sysfs.Ports(fstest.MapFS{
						dir + "state": {Data: []byte("4: ACTIVE\n")}, dir + "rate": {Data: []byte("400 Gb/sec (4X NDR)\n")},
						dir + name: {Data: fmt.Appendln(nil, v)},
					})
					if err != nil || len(ports) != 1 {
						t.Fatalf("%v %v", ports, err)
					}
					for c, v := range ports[0].Counters {
						h.Count(fmt.Sprintf("node%d", i), ports[0].Name, c, v, now)
					}
				}
			}
			list := h.Findings(now)
			switch {
			case want == "" && len(list) > 0:
				t.Errorf("%s: %v", name, ids(list))
			case all:
				for _, f := range list {
					if f.Severity != finding.Note || f.Kind == Marked {
						t.Errorf("%s of all ports: %+v", name, f)
					}
				}
			case want == "":
			case len(list) != 1 || list[0].ID != want+":node3/mlx5_0/1" ||
				(list[0].Severity == finding.Note) != (want == "congestion-marks") ||
				!strings.Contains(list[0].Evidence[0].Text, "(peers 0/h"):
				t.Errorf("%s: %+v", name, list)
			case strings.Contains(list[0].Text, "loses packets") != (want == "loss") ||
				strings.Contains(list[0].Text, "no buffers ready") != (want == "receiver-not-ready"):
				t.Errorf("%s: %s", name, list[0].Text)
			case want != "errors" && len(Drain(list)) > 0:
				t.Errorf("%s drains", name)
			}
		}
	}
}
