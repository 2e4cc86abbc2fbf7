package doctor

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/unit"
)

// filled is the least part of a port's rate that large messages take on a host in order: headers cost 2% to 6%, and
// ports up to QDR state their signalling rate, of which 80% carry data.
const filled = 0.7

// reached holds what perftest reached on each NIC against the rate of the NIC's port.
func reached(s *evidence.Set) []finding.Finding {
	best := map[string]evidence.Figure{}
	for _, f := range s.Figures {
		old, known := best[f.Device]
		if large := f.Small == 0; f.Device != "" &&
			(large == (old.Small == 0) && f.GBps > old.GBps || large && old.Small > 0 || !known) {
			best[f.Device] = f
		}
	}
	var found []finding.Finding
	for _, device := range slices.Sorted(maps.Keys(best)) {
		f := best[device]
		rate := unit.Rate(f.GBps) * unit.GBps
		x := finding.Finding{
			ID: "rdma-rate", Severity: finding.Note, Confidence: 1, Evidence: []finding.Quote{f.Quote},
			Title: fmt.Sprintf("perftest moved %s over %s", rate.Bits(), device),
			Cause: "No input says how fast its port is, so this is not judged.",
			Fix:   "give ibstat or ethtool of the host with it",
		}
		switch port := portRate(s.Cluster, device); {
		case f.Small > 0:
			x.Title += fmt.Sprintf(" in messages of %v", f.Small)
			x.Cause, x.Fix = "So small ones do not fill a port: its rate is not judged.", "ib_write_bw -q 4 -s 1M fills it"
		case port > 0 && rate >= filled*port:
			continue
		case port > 0:
			x.Severity, x.Confidence = finding.Warn, 0.8
			x.Title += fmt.Sprintf(", %.0f%% of its port's %s", 100*float64(rate/port), port.Bits())
			x.Cause = "The port, its PCIe slot or the way between gives less than the link's rate, or the test was not bound " +
				"near the NIC."
			x.Fix = "ib_write_bw -q 4 -s 1M under numactl near the NIC; lspci -vv for LnkSta; MTU and errors of the link"
		}
		found = append(found, x)
	}
	return found
}

// portRate is the greatest rate of a NIC of that name; 0 where no input says it.
func portRate(c *cluster.Cluster, device string) (rate unit.Rate) {
	if c == nil {
		return 0
	}
	for _, t := range c.Types {
		for i := range t.Devices {
			if d := &t.Devices[i]; d.NIC != nil && d.Label == device {
				for _, p := range d.NIC.Ports {
					rate = max(rate, p.Rate.Value)
				}
			}
		}
	}
	return rate
}
