package query

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

const rdmaSlowRail finding.Kind = "rdma-slow-rail"

// slowRail is the finding about a rail whose ports are all slow: none of them stands out then. The rail is held against the prediction for its
// slowest port. What small messages get is bound by their number, of which nothing is predicted.
func (m *rdmaHub) slowRail(r *BenchRDMARail) (f finding.Finding, slow bool) {
	size := m.rdma.bw.Size
	if r.Rate == 0 || predict.SizeClass(size) == predict.Sizes()[0] {
		return f, false
	}
	want, margin := 0.0, 0.0
	var from predict.Stream
	for _, i := range m.rails[r.Rail] {
		s := m.expects.stream(m.ends[i], len(m.rails))
		s.Bytes = size * unit.Bytes(m.q.Iters)
		rate, bar, err := s.Rate(m.expects.cluster)
		if err != nil {
			m.notes = append(m.notes, fmt.Sprintf("rails were compared with each other only: %v", err))
			return f, false
		}
		g := rate.GBps()
		if g <= 0 { // nobody says what its link carries
			return f, false
		}
		if want == 0 || g < want {
			want, margin, from = g, bar, s
		}
	}
	if r.Rate >= want/margin {
		return f, false
	}
	slot := "a PCIe slot that is not known"
	if from.Slot > 0 {
		slot = fmt.Sprintf("a PCIe slot of %.1f GB/s", from.Slot.GBps())
	}
	words := "the prediction"
	if m.expects.calibrated() {
		words = "the calibrated prediction"
	}
	return finding.Finding{
		ID: fmt.Sprintf("%s:%d", rdmaSlowRail, r.Rail), Kind: rdmaSlowRail, Severity: finding.Warn, Confidence: 1, Factor: r.Rate / want, Figure: "bandwidth", Where: fmt.Sprintf("rail %d", r.Rail),
		Text: fmt.Sprintf("the median pair of rail %d moves %.1f GB/s; %s for links of %.1f GB/s and %s says %.1f, and less than %.1f is beyond its error bar (a factor of %.2f)",
			r.Rail, r.Rate, words, from.Port.GBps(), slot, want, want/margin, margin),
		Fix: "Look at the PCIe width and generation of the NICs (lspci -vv), ACS and the IOMMU, the MTU, and the NUMA node of the processors; --qps 4 tells a limit of one queue pair.",
	}, true
}

// stream is what a port is expected to carry: by the cluster's NIC of that name, or of that rail where it has as many as there are rails, else by
// what the host says.
func (x expectation) stream(e rdmaEnd, rails int) predict.Stream {
	s := predict.Stream{Net: cluster.InfiniBand, Port: unit.Rate(e.GBps * float64(unit.GBps)), Slot: unit.Rate(e.Slot * float64(unit.GBps))}
	if e.Layer == "Ethernet" {
		s.Net = cluster.RoCE
	}
	if x.cluster == nil || len(x.cluster.Hosts) == 0 {
		return s
	}
	t := x.cluster.TypeOf(0)
	nics := t.Of(cluster.NIC)
	at := -1
	for i, d := range nics {
		if t.Devices[d].Label == e.Device || at < 0 && i == e.rail && len(nics) == rails {
			at = d
		}
	}
	if at < 0 {
		return s
	}
	nic := t.Devices[at].NIC
	if r := nic.Rate(); r.Known() && len(nic.Ports) == 1 {
		s.Port = r.Value
	}
	if nic.Kind != "" && nic.Kind != cluster.Ethernet {
		s.Net = nic.Kind
	}
	for _, l := range t.Links {
		if l.Kind == cluster.PCIe && (l.A == at || l.B == at) && l.Rate.Known() {
			s.Slot = l.Rate.Value
		}
	}
	return s
}

// calibrated tells whether figures of the network were measured on the cluster.
func (x expectation) calibrated() bool {
	return x.cluster != nil && x.cluster.Calibration != nil
}
