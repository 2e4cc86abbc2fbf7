package measure

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/stats"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Expectation is what nodes are held against: the prediction by the cluster's figures, and how far a healthy one may be
// off.
type Expectation struct {
	Cluster *cluster.Cluster // nil: none was given
	OneNode bool             // the job that nodes are checked for has one, and sends nothing over RDMA
}

// NewExpectation is that of a cluster, nil where none was given, for the job of this process.
func NewExpectation(c *cluster.Cluster) Expectation { return Expectation{c, oneNodeJob(os.Getenv)} }

// oneNodeJob tells that Slurm runs a job of one node here. Where nobody says, there may be several.
func oneNodeJob(getenv func(string) string) bool {
	if n := getenv("SLURM_JOB_NUM_NODES"); n != "" {
		return n == "1"
	}
	hosts, err := cluster.ParseHosts(getenv("SLURM_JOB_NODELIST"))
	return err == nil && len(hosts) == 1
}

// prediction is what the figures are: calibrated where some were measured on the cluster.
func (x Expectation) prediction() string {
	if x.Cluster != nil && x.Cluster.Calibration != nil {
		return "calibrated prediction"
	}
	return "prediction"
}

// host is which host of the description a node is, or -1.
func (x Expectation) host(n *Node) int {
	for _, name := range []string{n.Name, n.Host} {
		short, _, _ := strings.Cut(name, ".")
		for _, name := range []string{name, short} {
			if i := x.Cluster.HostIndex(name); name != "" && i >= 0 {
				return i
			}
		}
	}
	return -1
}

// named tells that the description names the hosts of a site. One node, and node0, node1, … stand for any: presets
// and counts make such names.
func (x Expectation) named() bool {
	for i, h := range x.Cluster.Hosts {
		if len(x.Cluster.Hosts) > 1 && h.Name != "node"+strconv.Itoa(i) {
			return true
		}
	}
	return false
}

// node is what the description says of a host: under its name or, where it names none or the host has an address only,
// of all its nodes if they are alike.
func (x Expectation) node(n *Node) *cluster.NodeType {
	if x.Cluster == nil || len(x.Cluster.Hosts) == 0 {
		return nil
	}
	if i := x.host(n); i >= 0 {
		return x.Cluster.TypeOf(i)
	}
	if _, err := netip.ParseAddr(n.Host); err != nil && x.named() {
		return nil
	}
	first := x.Cluster.TypeOf(0)
	for i := range x.Cluster.Hosts {
		t := x.Cluster.TypeOf(i)
		if t == nil || t.Count(cluster.GPU) != first.Count(cluster.GPU) || t.Count(cluster.NIC) != first.Count(cluster.NIC) {
			return nil
		}
	}
	return first
}

// stream is what a port is expected to carry: by the cluster's NIC of that name, or of that rail where it has as many
// as there are rails, else by what the host says.
func (x Expectation) stream(e railEnd, rails int) predict.Stream {
	s := predict.Stream{Net: cluster.InfiniBand, Port: e.Rate, Slot: hardware.PCIeRate(e.SlotGTs, e.SlotLanes)}
	if e.Layer == "Ethernet" {
		s.Net = cluster.RoCE
	}
	if x.Cluster == nil || len(x.Cluster.Hosts) == 0 {
		return s
	}
	t := x.Cluster.TypeOf(0)
	nics := t.Of(cluster.NIC)
	at := -1
	for i, d := range nics {
		if t.Devices[d].Label == portEnd(e.Name).device || at < 0 && i == e.rail && len(nics) == rails {
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

// pairRate is what two hosts send each other at once by NCCL, one GPU each, as predicted, in GB/s each way, and the
// error bar of it.
func (x Expectation) pairRate(size unit.Bytes, release string) (gbps, margin float64, err error) {
	version, err := nccl.ParseVersion(release)
	if near, ok := nccl.Nearest(release); err != nil && ok {
		version, err = near, nil
	}
	if release == "" {
		version, err = nccl.Newest, nil
	}
	if err != nil {
		return 0, 0, err
	}
	l, err := nccl.Block(x.Cluster, 2, 1)
	if err != nil {
		return 0, 0, err
	}
	p, err := predict.New(x.Cluster, l, version, nil, nil)
	if err != nil {
		return 0, 0, err
	}
	op := coll.Op{Kind: coll.SendRecv, Bytes: size, Type: coll.Uint8}
	s, err := p.Auto(op)
	if err != nil {
		return 0, 0, err
	}
	run, err := p.Price(op, s)
	if err != nil {
		return 0, 0, err
	}
	return float64(size) / run.Time.Micros() / 1e3, run.Margin, nil
}

// calibratedBar is what GPUs of one model differ by. Other bars are two standard deviations of what is known of a
// figure that nobody measured here.
const calibratedBar = 1.12

// expected is what a GPU should do, and how far below it a healthy one may be.
type expected struct {
	rate, bar float64
	from      string
}

// gpu is the predicted product (TFLOPS) and copy (GB/s) of a GPU; false where it is in no catalogue.
func (x Expectation) gpu(name string) (product, stream expected, ok bool) {
	m, found := hardware.GPUByName(name)
	c := x.Cluster
	if c == nil {
		c = &cluster.Cluster{}
	}
	f, err := step.Calibrated(c)
	if !found || err != nil || m.Peak[cluster.BF16] <= 0 {
		return product, stream, false
	}
	g, err := step.NewGPU(m, f)
	if err != nil {
		return product, stream, false
	}
	flops := 2 * math.Pow(loadSide, 3)
	t := g.Time(&workload.Task{
		Kind: workload.Product, M: loadSide, N: loadSide, K: loadSide, Count: 1, Flops: flops, Starts: 1,
	}, workload.BF16)
	s := g.Time(&workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * loadCopy), Starts: 1}, workload.BF16)
	product = expected{flops / float64(t) / 1e12, kernelBar("hopper.ceiling", 0.04), "the prediction"}
	stream = expected{2 * float64(loadCopy) / float64(s) / 1e9, kernelBar("hopper.mem_share", 0.06), "the prediction"}
	if c.Calibration != nil && slices.ContainsFunc(c.Calibration.Figures,
		func(f cluster.Calibrated) bool { return strings.HasPrefix(f.Name, cluster.StepFigure) }) {
		for _, e := range []*expected{&product, &stream} {
			e.bar, e.from = calibratedBar, "the calibrated prediction"
		}
	}
	return product, stream, true
}

// kernelBar is the factor that a kernel of a GPU nobody measured is expected within: two standard deviations of what is
// known of its figure and of kernels around it.
func kernelBar(figure string, noise float64) float64 {
	for _, f := range step.FigureTable() {
		if f.Name == figure {
			return math.Exp(2 * math.Hypot(f.Doubt, noise))
		}
	}
	return 1.5
}

// slowGPUs finds GPUs that do less than predicted, beyond the error bar, or than others of their model do.
func (x Expectation) slowGPUs(nodes []*Node) {
	var all []Load
	for _, n := range nodes {
		all = append(all, n.Loads...)
	}
	for _, n := range nodes {
		for _, g := range n.Loads {
			product, stream, known := x.gpu(g.Name)
			if !known || !n.slowGPU(g, "products", "TFLOPS", g.TFLOPS, product) {
				n.slowGPU(g, "products", "TFLOPS", g.TFLOPS, peers(all, g.Name, func(g Load) float64 { return g.TFLOPS }))
			}
			if !known || !n.slowGPU(g, "memory", "GB/s", g.GBps, stream) {
				n.slowGPU(g, "memory", "GB/s", g.GBps, peers(all, g.Name, func(g Load) float64 { return g.GBps }))
			}
		}
	}
}

// slowGPU finds a GPU that does less than expected.
func (n *Node) slowGPU(g Load, what, unit string, has float64, want expected) bool {
	least := want.rate / want.bar
	if has <= 0 || has >= least {
		return false
	}
	why := ""
	if g.MHz > 0 {
		why = fmt.Sprintf(" at %d MHz", g.MHz)
	}
	if g.Why != "" {
		why += " (" + g.Why + ")"
	}
	f := finding.Finding{
		ID: "gpu-slow-" + what, Severity: finding.Warn, Where: fmt.Sprintf("%s/gpu%d", n.Host, g.Index),
		Factor: has / want.rate,
		Text: fmt.Sprintf("GPU %d of %s does %.0f %s in %s%s; %s says %.0f, and less than %.0f is beyond its error bar",
			g.Index, n.Host, has, unit, what, why, want.from, want.rate, least),
		Fix: "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE shows locked clocks, limits and throttling; nvidia-smi -rgc frees " +
			"clocks.",
	}
	if has < least/want.bar {
		f.Severity = finding.Error
	}
	n.found(f)
	return true
}

// peers is the median of GPUs of one model, and how far one may be below it: five of their own deviations, and a tenth
// at least. Fewer than four say nothing.
func peers(list []Load, name string, of func(Load) float64) expected {
	var all, off []float64
	for _, g := range list {
		if v := of(g); g.Name == name && v > 0 {
			all = append(all, v)
		}
	}
	if len(all) < 4 {
		return expected{0, 1, ""}
	}
	mid := stats.Median(all)
	for _, v := range all {
		off = append(off, math.Abs(math.Log(v/mid)))
	}
	return expected{mid, math.Exp(max(math.Log(1/0.9), 5*1.48*stats.Median(off))), "the median of its peers"}
}
