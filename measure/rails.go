package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// RDMA is what perftest measured between hosts.
type RDMA struct {
	Findings   []finding.Finding `json:"findings"`
	Hosts      []string          `json:"hosts"`
	Iters      int               `json:"iters"`
	Notes      []string          `json:"notes"`
	Pairs      []RailPair        `json:"pairs"`
	Programs   []string          `json:"programs"`
	Rails      []Rail            `json:"rails"`
	Results    result.Sweeps     `json:"results"`
	Rounds     int               `json:"rounds"` // with those that were repeated
	Seconds    float64           `json:"seconds"`
	SizeBytes  unit.Bytes        `json:"size_bytes"`  // of the messages that bandwidth was measured with
	SmallBytes unit.Bytes        `json:"small_bytes"` // and latency
}

// Rail is the ports of one number on all hosts.
type Rail struct {
	Rail    int       `json:"rail"`
	Ports   []string  `json:"ports"`     // host/device/port
	Link    unit.Rate `json:"link_GBps"` // of the slowest port, 0 unknown
	Rate    float64   `json:"median_bandwidth_GBps"`
	Both    float64   `json:"median_both_GBps"`
	Latency float64   `json:"median_latency_s"`
}

// RailPair is one direction between two ports.
type RailPair struct {
	Rail int    `json:"rail"`
	From string `json:"from"` // sends: host/device/port
	To   string `json:"to"`
	pairs.Measure
}

// Wrong reports findings that are more than notes.
func (d *RDMA) Wrong() bool { return finding.Serious(d.Findings) }

// Ranks measures between the hosts of a job, one rank each. Rank 0 leads and has the answer; the others follow, and
// have none.
func (p *Perftest) Ranks(ctx context.Context, s *engine.Star, show func(string)) (*RDMA, error) {
	m := member{star: s, rdma: p}
	if s.Rank() != 0 {
		return nil, m.serve(ctx)
	}
	h := newHub(m)
	defer h.end()
	return h.measureRDMA(ctx, show)
}

// measureRDMA is the measurement as rank 0 leads it.
func (h *hub) measureRDMA(ctx context.Context, show func(string)) (*RDMA, error) {
	begin := time.Now()
	show("ports of all hosts")
	m, err := h.findRails(ctx, false)
	show("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	s := m.sweep(show)
	t, err := s.Measure(ctx, m.rounds(h.rdma.Rounds))
	show("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	d := m.document(t)
	d.Rounds, d.Seconds = s.Turns, time.Since(begin).Seconds()
	return d, nil
}

// findRails are the rails of all members; an error says why nothing can be measured.
func (h *hub) findRails(ctx context.Context, brief bool) (*rails, error) {
	m := &rails{hub: h, brief: brief}
	m.collect(h.claimPorts(ctx))
	return m, m.possible()
}

// portsTime is how long a host may take to list its ports.
const portsTime = 20 * time.Second

// claimPorts takes the ports of all members for a new job.
func (h *hub) claimPorts(ctx context.Context) []reply {
	job := bench.NewSession()
	all := make([]int, len(h.members))
	for r := range all {
		all[r] = r
	}
	return h.askAll(ctx, all, portsTime, func(int) order { return order{Do: "ports", Job: job} })
}

// railEnd is a port of a member, as pairs know it.
type railEnd struct {
	Port
	rank, rail int
}

// rails are the RDMA ports of all members, those of one number together.
type rails struct {
	*hub
	expect Expectation // what rails are held against
	brief  bool        // neither both ways at once nor latency the other way

	ends   []railEnd
	rails  [][]int // the ends of each
	absent []finding.Finding
	notes  []string
}

// collect makes rails of what hosts have. One that has fewer ports than most is a finding.
func (m *rails) collect(replies []reply) {
	count := map[int]int{}
	usual := 0
	for _, x := range replies {
		if n := len(x.Ports); n > 0 {
			if count[n]++; count[n] > count[usual] || count[n] == count[usual] && n > usual {
				usual = n
			}
		}
	}
	for r, x := range replies {
		host := m.members[r].Host
		text := strings.TrimPrefix(x.Failed, host+": ")
		if text == "" && len(x.Ports) < usual {
			text = fmt.Sprintf("has %d active RDMA ports; most hosts have %d", len(x.Ports), usual)
		}
		if text != "" {
			m.absent = append(m.absent, finding.Finding{
				ID: "rdma-ports:" + host, Kind: "rdma-ports", Severity: finding.Error, Confidence: 1, Where: host,
				Nodes: []string{host}, Ranks: []int{r}, Text: host + ": " + text,
				Fix: "ibv_devinfo shows the ports and their states; ibstat and the subnet manager's log, or the switch, say why " +
					"one is not ACTIVE.",
			})
		}
		for k, p := range x.Ports {
			if len(m.rails) <= k {
				m.rails = append(m.rails, nil)
			}
			m.rails[k] = append(m.rails[k], len(m.ends))
			m.ends = append(m.ends, railEnd{p, r, k})
		}
	}
}

// possible says why nothing can be measured.
func (m *rails) possible() error {
	if slices.ContainsFunc(m.rails, func(ends []int) bool { return len(ends) > 1 }) {
		return nil
	}
	var why []string
	for _, f := range m.absent {
		if !slices.Contains(why, f.Text) && len(why) < 4 {
			why = append(why, f.Text)
		}
	}
	if len(why) == 0 {
		return errors.New("nothing can be measured: no two hosts have an active RDMA port of the same rail")
	}
	return fmt.Errorf("nothing can be measured: %s", strings.Join(why, "; "))
}

// railRounds is how many rounds of a rail are measured where there are more.
const railRounds = 16

// rounds are those of all rails, one rail after the other.
func (m *rails) rounds(most int) (list [][][2]int) {
	most = cmp.Or(most, railRounds)
	for _, ends := range m.rails {
		if all := pairs.Count(len(ends)); most < all {
			m.notes = append(m.notes, fmt.Sprintf("each port was measured with about %d of %d others; --rounds %d measures all",
				most, len(ends)-1, all))
		}
		for _, round := range Rounds(len(ends), most) {
			turn := make([][2]int, len(round))
			for i, p := range round {
				turn[i] = [2]int{ends[p[0]], ends[p[1]]}
			}
			list = append(list, turn)
		}
	}
	m.notes = slices.Compact(m.notes)
	return list
}

// sweep is over all ports.
func (m *rails) sweep(show func(string)) *Sweep {
	tests := len(pairTests)
	if m.brief {
		tests = briefTests
	}
	s := &Sweep{
		Away: func(e int) bool { return m.away(m.ends[e].rank) != "" }, Turn: Concurrently(m.pair), Show: show, All: true,
		First: cmp.Or(m.first, time.Duration(tests)*firstTime),
	}
	hosts := hostsOf(m.members)
	names := rankNames(hosts)
	for _, e := range m.ends {
		s.Names, s.Hosts = append(s.Names, names[e.rank]+"/"+e.Name), append(s.Hosts, hosts[e.rank])
	}
	return s
}

// pair measures two ports.
func (m *rails) pair(ctx context.Context, p [2]int, limit time.Duration) [2]pairs.Measure {
	ends := [2]railEnd{m.ends[p[0]], m.ends[p[1]]}
	return m.hub.pair(ctx, [2]int{ends[0].rank, ends[1].rank}, limit, func(i int) order {
		o := &perftestOrder{Port: ends[i].Name, GPU: -1, Peer: m.star.Address(ends[1-i].rank), Brief: m.brief}
		if m.rdma.Cuda {
			o.GPU = ends[i].rail
		}
		return order{Do: "pair", RDMA: o}
	})
}

// document is what was measured, and what stands out of it.
func (m *rails) document(t *pairs.Table) *RDMA {
	p := m.rdma
	d := &RDMA{
		Iters: p.Iters, Programs: []string{perfProgram(p.Verb, false), perfProgram(p.Verb, true)}, SizeBytes: p.Size,
		SmallBytes: p.Small, Findings: append(append([]finding.Finding{}, m.absent...), t.Findings()...), Pairs: []RailPair{},
		Rails: []Rail{}, Results: result.Sweeps{},
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Kind == pairs.CutOff || f.Kind == pairs.Unfinished {
			f.Fix = "The same command without busbar: " + d.Programs[0] +
				" -d DEVICE on one host, and with the address of that host on the other. show_gids lists GID indices; " +
				"ibv_devinfo the state of ports."
		}
	}
	for _, x := range m.members {
		if !slices.Contains(d.Hosts, x.Host) {
			d.Hosts = append(d.Hosts, x.Host)
		}
	}
	like := result.Sweep{
		Source: result.Measured, Op: coll.SendRecv, Dtype: coll.Uint8.String(), Ranks: 2, Transport: result.RDMA,
		Session: bench.NewSession(), When: time.Now().UTC().Truncate(time.Second),
	}
	for k, ends := range m.rails {
		r := Rail{Rail: k}
		for _, e := range ends {
			r.Ports = append(r.Ports, t.Names[e])
			if g := m.ends[e].Rate; g > 0 && (r.Link == 0 || g < r.Link) {
				r.Link = g
			}
		}
		part := &pairs.Table{}
		for _, c := range t.Cells {
			if m.ends[c.From].rail == k {
				d.Pairs = append(d.Pairs, RailPair{k, t.Names[c.From], t.Names[c.To], c})
				d.Results = append(d.Results, m.sweeps(like, t, c)...)
				if c.Failed == "" {
					part.Cells = append(part.Cells, c)
				}
			}
		}
		_, r.Rate, _ = part.Extremes(pairs.GBps)
		_, r.Both, _ = part.Extremes(pairs.BothGBps)
		_, r.Latency, _ = part.Extremes(pairs.Seconds)
		d.Rails = append(d.Rails, r)
		if f, slow := m.slowRail(&r); slow {
			d.Findings = append(d.Findings, f)
		}
	}
	d.Notes = append([]string{}, m.notes...)
	return d
}

// sweeps are what a direction of a pair showed, as files of results keep it.
func (m *rails) sweeps(like result.Sweep, t *pairs.Table, c pairs.Measure) (list result.Sweeps) {
	hosts := []string{t.Hosts[c.From], t.Hosts[c.To]}
	like.Hosts = cluster.FormatHosts(hosts)
	if like.Nodes, like.PerNode = 2, 1; hosts[0] == hosts[1] {
		like.Nodes, like.PerNode = 1, 2
	}
	for i, took := range []float64{
		float64(m.rdma.Size) / float64(c.Rate), float64(m.rdma.Size) / float64(c.Both), c.Latency.Seconds(),
	} {
		if c.Failed != "" || !(took > 0) || math.IsInf(took, 0) {
			continue
		}
		test, s := perfTest{latency: i == 2, both: i == 1}, like
		s.Tool = "perftest " + perfProgram(m.rdma.Verb, test.latency)
		s.Env = map[string]string{"from": t.Names[c.From], "to": t.Names[c.To], "both": strconv.FormatBool(test.both)}
		s.Points = []result.Point{
			{Size: m.rdma.size(test), Out: &result.Timing{Time: result.Times{Mean: unit.Seconds(took)}, Runs: m.rdma.Iters}},
		}
		list = append(list, &s)
	}
	return list
}

const rdmaSlowRail finding.Kind = "rdma-slow-rail"

// slowRail is the finding about a rail whose ports are all slow: none of them stands out then. The rail is held against
// the prediction for its slowest port. What small messages get is bound by their number, of which nothing is predicted.
func (m *rails) slowRail(r *Rail) (f finding.Finding, slow bool) {
	size := m.rdma.Size
	if r.Rate == 0 || predict.SizeClass(size) == predict.Sizes()[0] {
		return f, false
	}
	want, margin := 0.0, 0.0
	var from predict.Stream
	for _, i := range m.rails[r.Rail] {
		s := m.expect.stream(m.ends[i], len(m.rails))
		s.Bytes = size * unit.Bytes(m.rdma.Iters)
		rate, bar, err := s.Rate(m.expect.Cluster)
		if err != nil {
			m.notes = append(m.notes, fmt.Sprintf("rails were compared with each other only: %v", err))
		}
		if err != nil || rate <= 0 { // nobody says what its link carries
			return f, false
		}
		if g := rate.GBps(); want == 0 || g < want {
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
	return finding.Finding{
		ID: fmt.Sprintf("%s:%d", rdmaSlowRail, r.Rail), Kind: rdmaSlowRail, Severity: finding.Warn, Confidence: 1,
		Factor: r.Rate / want, Figure: "bandwidth", Where: fmt.Sprintf("rail %d", r.Rail),
		Text: fmt.Sprintf("the median pair of rail %d moves %.1f GB/s; the %s for links of %.1f GB/s and %s says %.1f, and "+
			"less than %.1f is beyond its error bar (a factor of %.2f)",
			r.Rail, r.Rate, m.expect.prediction(), from.Port.GBps(), slot, want, want/margin, margin),
		Fix: "Look at the PCIe width and generation of the NICs (lspci -vv), ACS and the IOMMU, the MTU, and the NUMA node " +
			"of the processors; --qps 4 tells a limit of one queue pair.",
	}, true
}
