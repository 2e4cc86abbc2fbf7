package predict

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Branch is a row under one answer to a question that nobody answered and that decides how data moves.
type Branch struct {
	If       string       `json:"if"`   // the answer
	Tell     string       `json:"tell"` // what to run to know it
	Algo     string       `json:"algo"`
	Proto    string       `json:"proto"`
	Channels int          `json:"channels"`
	Time     unit.Time    `json:"time_s"`
	Low      unit.Time    `json:"low_s"`
	High     unit.Time    `json:"high_s"`
	AlgBW    unit.Rate    `json:"algbw_GBps"`
	BusBW    unit.Rate    `json:"busbw_GBps"`
	Limit    result.Limit `json:"bottleneck"`
}

// branch is the row under an answer.
func (r *Row) branch(answer, tell string) Branch {
	return Branch{
		If: answer, Tell: tell, Algo: r.Algo, Proto: r.Proto, Channels: r.Channels, Time: r.Time, Low: r.Low, High: r.High,
		AlgBW: r.AlgBW, BusBW: r.BusBW, Limit: r.Limit,
	}
}

// scene is what a predictor is made for.
type scene struct {
	cluster *cluster.Cluster
	layout  nccl.Layout
	env     map[string]string
	how     Conditions
}

// fork is a fact that decides how data moves and that nobody stated: the answer that is taken because it is likelier,
// and the other one.
type fork struct {
	taken, other string
	tell         string
	change       func(*scene) // makes the other answer true

	under *forced // the predictor under the other answer, made when it is asked
	err   error
}

// questions are what forks are looked for by, each with the facts that it needs. They give nil where the fact is known
// or makes no difference.
var questions = []func(p *Predictor) *fork{
	whichGPUs, bridges, peerAccess, gpuDirect, inSwitch, sharp, netPlugin,
}

// unanswered are the forks of a predictor.
func (p *Predictor) unanswered() []*fork {
	if p.forks == nil {
		p.forks = []*fork{}
		for _, ask := range questions {
			if f := ask(p); f != nil && p.Plan.RCCL == nil {
				p.forks = append(p.forks, f)
			}
		}
	}
	return p.forks
}

// Fork is a fact that decides how data moves and that nobody stated: the answer that is taken, the other one, the
// command that tells, and where the other one holds.
type Fork struct {
	Taken, Other, Tell string
	Cluster            *cluster.Cluster
	Layout             nccl.Layout
	Env                map[string]string
}

// WidestFork is a factor that is told whatever the error bar: a bar is the model's error where the facts are known.
const WidestFork = 4.0 / 3

// Forks are the facts that nobody stated.
func (p *Predictor) Forks() (list []Fork) {
	for _, f := range p.unanswered() {
		s := p.otherScene(f.change)
		list = append(list, Fork{f.taken, f.other, f.tell, s.cluster, s.layout, s.env})
	}
	return list
}

// addBranches gives rows their branches: of the forks that change a row by more than its error bar, the one that
// changes it most.
func (p *Predictor) addBranches(rows []Row) {
	for i := range rows {
		r := &rows[i]
		if _, measured := p.MeasuredMargin(r.run.Op); measured || r.Beyond || r.Time <= 0 {
			continue
		}
		most := min(max(1, float64(r.High)/float64(r.Time)), WidestFork)
		for _, f := range p.unanswered() {
			other, err := f.row(p, r)
			if err != nil || other.Time <= 0 {
				continue
			}
			factor := float64(max(other.Time, r.Time)) / float64(min(other.Time, r.Time))
			if factor > most {
				most = factor
				r.Floor = min(r.Floor, other.Floor)
				r.Branches = []Branch{r.branch(f.taken, f.tell), other.branch(f.other, f.tell)}
			}
		}
	}
}

// row is a row under the other answer: what NCCL takes there where it was what NCCL takes here.
func (f *fork) row(p *Predictor, r *Row) (Row, error) {
	if f.under == nil && f.err == nil {
		f.under, f.err = p.otherwise(f.change)
	}
	if f.err != nil {
		return Row{}, f.err
	}
	if r.Chosen {
		return f.under.now(r.run.Op)
	}
	s, err := f.under.named(r.run.Op, r.Algo, r.Proto)
	if err != nil {
		return Row{}, err
	}
	return f.under.row(r.run.Op, s, s)
}

// otherScene is what a predictor is made for, changed.
func (p *Predictor) otherScene(change func(*scene)) scene {
	s := scene{p.Cluster, slices.Clone(p.Layout), maps.Clone(p.asked), p.Conditions}
	if s.env == nil {
		s.env = map[string]string{}
	}
	change(&s)
	return s
}

// otherwise is a predictor for another scene.
func (p *Predictor) otherwise(change func(*scene)) (*forced, error) {
	s := p.otherScene(change)
	q, err := New(s.cluster, s.layout, p.Plan.Version, s.env, p.Figures)
	if err != nil {
		return nil, err
	}
	q.Conditions = s.how
	return newForced(q), nil
}

// whichGPUs asks which of a node's GPUs take part: a layout says how many, and the first are taken, while others may
// have another way to the network or to each other.
func whichGPUs(p *Predictor) *fork {
	t, used := p.Cluster.TypeOf(p.Layout[0].Host), p.firstNode()
	if slices.ContainsFunc(p.Layout, func(r nccl.Rank) bool { return p.Cluster.TypeOf(r.Host) != t }) {
		return nil
	}
	gpus := t.Of(cluster.GPU)
	if p.Chosen || len(used) == len(gpus) {
		return nil
	}
	way := ways(t, len(p.Plan.Nodes) > 1)
	others := gpus[len(gpus)-len(used):]
	if way(others) == way(used) { // as far as these go: one of each part of the node
		others = nil
		for i := range used {
			others = append(others, gpus[i*len(gpus)/len(used)])
		}
	}
	if way(others) == way(used) {
		return nil
	}
	numbers := func(list []int) string {
		var text []string
		for _, d := range list {
			text = append(text, strconv.Itoa(slices.Index(gpus, d)))
		}
		return strings.Join(text, ",")
	}
	gpu := "GPUs"
	if len(used) == 1 {
		gpu = "GPU"
	}
	return &fork{
		taken: fmt.Sprintf("%s %s of each node (%s)", gpu, numbers(used), way(used)),
		other: fmt.Sprintf("%s %s of each node (%s; --devices %[2]s)", gpu, numbers(others), way(others)),
		tell:  "nvidia-smi topo -m inside the job",
		change: func(s *scene) {
			for i, r := range s.layout {
				s.layout[i].GPU = others[slices.Index(used, r.GPU)]
			}
		},
	}
}

// firstNode are the GPUs that take part of the host that rank 0 is on.
func (p *Predictor) firstNode() (gpus []int) {
	for _, r := range p.Layout {
		if r.Host == p.Layout[0].Host {
			gpus = append(gpus, r.GPU)
		}
	}
	return gpus
}

// ways says how GPUs of a type reach their NICs where they use them, and each the next one.
func ways(t *cluster.NodeType, net bool) func(gpus []int) string {
	near := t.Nearest()
	routes := cluster.NewRoutes(&cluster.Cluster{Types: []*cluster.NodeType{t}})
	return func(gpus []int) string {
		var nics, peers []string
		for _, n := range near {
			if c := n.Class.String(); net && slices.Contains(gpus, n.GPU) && len(n.NICs) > 0 && !slices.Contains(nics, c) {
				nics = append(nics, c)
			}
		}
		for i, g := range gpus[:len(gpus)-1] {
			_, c := routes.Inside(0, g, gpus[i+1])
			if text := c.String(); !slices.Contains(peers, text) {
				peers = append(peers, text)
			}
		}
		var parts []string
		if len(nics) > 0 {
			parts = append(parts, strings.Join(nics, " and ")+" to the NIC")
		}
		if len(peers) > 0 {
			parts = append(parts, strings.Join(peers, " and ")+" to each other")
		}
		return strings.Join(parts, ", ")
	}
}

// peerAccess asks whether GPUs that only PCIe joins read and write each other's memory. GeForce cards do with a patched
// driver, others unless the BIOS or a virtual machine is in the way.
func peerAccess(p *Predictor) *fork {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	access, from := hardware.PeerAccess(t)
	if p.inner() == sim.OverNVLink || from > cluster.Assumed || p.Plan.Env["NCCL_P2P_DISABLE"] == "1" {
		return nil
	}
	const yes, no = "GPUs reach each other's memory (P2P)", "GPUs do not reach each other's memory (no P2P)"
	f := &fork{taken: yes, other: no, tell: "nvidia-smi topo -p2p r", change: func(s *scene) {
		s.cluster = hardware.WithPeerAccess(s.cluster, cluster.No, cluster.Spec)
	}}
	if access == cluster.No {
		f.taken, f.other = no, yes+" by a patched driver and NCCL_P2P_LEVEL=SYS"
		f.change = func(s *scene) { s.env["NCCL_P2P_LEVEL"] = "SYS" }
	}
	return f
}

// gpuDirect asks whether NICs read and write the memory of GPUs: that takes a module of the kernel beside the card.
func gpuDirect(p *Predictor) *fork {
	f := &fork{
		taken: "NICs reach GPU memory (GPUDirect RDMA)", other: "NICs do not reach GPU memory (no GPUDirect RDMA)",
		tell: "NCCL_DEBUG=INFO (\"via NET/…/GDRDMA\")",
	}
	from, to := cluster.Maybe, cluster.No
	if p.noDirect {
		f.taken, f.other, from, to = f.other, f.taken, cluster.No, cluster.Yes
	}
	g := p.Cluster.TypeOf(p.Layout[0].Host).Devices[p.Layout[0].GPU].GPU
	other, unknown := hardware.WithGPUDirect(p.Cluster, from, to)
	if !unknown || len(p.Plan.Nodes) < 2 || p.network() == cluster.Ethernet || g != nil && g.GDR == cluster.No {
		return nil
	}
	f.change = func(s *scene) { s.cluster = other }
	return f
}

// inSwitch asks whether NVSwitches reduce, of machines that somebody described in a few words.
func inSwitch(p *Predictor) *fork {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	if _, set := p.Plan.Env["NCCL_NVLS_ENABLE"]; set || p.Plan.NVLSChannels == 0 || t.Preset != "" ||
		t.Tree != cluster.Assumed {
		return nil
	}
	return &fork{
		taken: "NVSwitches reduce (NVLS)", other: "NVSwitches do not reduce (no NVLS)",
		tell:   "NCCL_DEBUG=INFO (\"NVLS multicast support is available\")",
		change: func(s *scene) { s.env["NCCL_NVLS_ENABLE"] = "0" },
	}
}

// netPlugin asks whether NCCL finds the plugin that a network needs; without it, it sends by kernel sockets.
func netPlugin(p *Predictor) *fork {
	kind := p.network()
	if p.Plugin || p.Year > 0 || len(p.Plan.Nodes) < 2 ||
		!slices.Contains([]cluster.NetKind{cluster.EFA, cluster.Slingshot, cluster.TCPX, cluster.TCPXO}, kind) {
		return nil
	}
	f := &fork{
		taken: fmt.Sprintf("NCCL has the plugin for %s", kind), other: "it has none, and sends by kernel sockets",
		tell: "NCCL_DEBUG=INFO (\"Using network\")",
		change: func(s *scene) {
			s.cluster, _ = hardware.WithGPUDirect(hardware.WithNetwork(s.cluster, cluster.Ethernet), cluster.Yes, cluster.No)
		},
	}
	if kind == cluster.EFA && !p.firstEFA { // machines that have it come with the plugin, of an age
		f.taken, f.other = "aws-ofi-nccl 1.9 or newer", "aws-ofi-nccl before 1.9 (--launch \"aws-ofi-nccl 1.7\")"
		f.change = func(s *scene) { s.how.Year = efaNew - 1 }
	}
	return f
}

// bridges asks whether neighbours among cards that could have one are joined by an NVLink bridge.
func bridges(p *Predictor) *fork {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	m, _ := hardware.GPUByName(t.Devices[p.Layout[0].GPU].Model.Value)
	if m.Module() || m.Links == 0 || t.Linked() || t.Tree != cluster.Assumed || len(p.Plan.Nodes[0].Ranks) < 2 {
		return nil
	}
	return &fork{
		taken: "no NVLink bridge", other: "bridges join neighbouring cards", tell: "nvidia-smi topo -m (\"NV4\")",
		change: func(s *scene) { s.cluster = hardware.WithBridges(s.cluster, m) },
	}
}

// sharp asks whether switches of the network reduce, where the job would let them.
func sharp(p *Predictor) *fork {
	if p.Plan.Env["NCCL_COLLNET_ENABLE"] != "1" || p.Cluster.Network.Reduction != cluster.Maybe || len(p.Plan.Nodes) < 2 {
		return nil
	}
	return &fork{
		taken: "the network's switches do not reduce (no SHARP)", other: "the network's switches reduce (SHARP)",
		tell: "NCCL_DEBUG=INFO (\"Connected to SHARP\", \"CollNet\")",
		change: func(s *scene) {
			c := *s.cluster
			c.Network.Reduction, s.cluster = cluster.Yes, &c
		},
	}
}

// settled is the cluster and the settings as other facts show them to be, and whether it has no GPUDirect by that. Who
// sets how far peer access reaches has cards that allow it, whatever the catalogue says of their driver; who has
// patched the driver of cards to allow it uses it all over the node. On EFA, instances with cards have no GPUDirect
// (Amazon EC2 documentation, accelerated computing instances, 2026). GPUDirect-TCPX comes with rings and Simple (Google
// Kubernetes Engine, maximize GPU network bandwidth, 2024).
func settled(c *cluster.Cluster, env map[string]string) (_ *cluster.Cluster, _ map[string]string, noDirect bool) {
	for _, t := range c.Types {
		access, from := hardware.PeerAccess(t)
		if access == cluster.Yes && from > cluster.Assumed && patched(t) {
			env = usually(env, "NCCL_P2P_LEVEL", "SYS")
		}
		if nics := t.Of(cluster.NIC); len(nics) > 0 && t.Devices[nics[0]].NIC.Kind == cluster.TCPX {
			env = usually(usually(env, "NCCL_ALGO", "Ring"), "NCCL_PROTO", "Simple")
		}
		if nccl.PeersAsked(env) && access == cluster.No && from == cluster.Assumed {
			c = hardware.WithPeerAccess(c, cluster.Maybe, cluster.Unknown)
		}
		for _, d := range t.Of(cluster.GPU) {
			m, ok := hardware.GPUByName(t.Devices[d].Model.Value)
			if nics := t.Of(cluster.NIC); ok && !m.Module() && len(nics) > 0 && t.Devices[nics[0]].NIC.Kind == cluster.EFA {
				c, noDirect = hardware.WithGPUDirect(c, cluster.Maybe, cluster.No)
			}
			break
		}
	}
	return c, env, noDirect
}

// usually are settings with one more where nobody has set it.
func usually(env map[string]string, key, value string) map[string]string {
	if _, set := env[key]; set {
		return env
	}
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env[key] = value
	return env
}

// patched tells GPUs whose driver as it comes does not give them peer access.
func patched(t *cluster.NodeType) bool {
	gpus := t.Of(cluster.GPU)
	if len(gpus) == 0 {
		return false
	}
	m, _ := hardware.GPUByName(t.Devices[gpus[0]].Model.Value)
	return m.Peers == cluster.No
}
