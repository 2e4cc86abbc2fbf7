package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/natural"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// BenchRDMA measures RDMA between hosts with the programs of perftest, one rail at a time, and names slow hosts, ports
// and links.
type BenchRDMA struct {
	Verb     string   `default:"write" enum:"write,read,send" help:"write, read or send: ib_VERB_bw and ib_VERB_lat are run (default write)."`
	Size     Size     `default:"1M" placeholder:"SIZE" help:"Message size for bandwidth (default 1M)."`
	Small    Size     `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Iters    int      `name:"iters" default:"1000" least:"5" help:"Messages per test (default 1000)."`
	QPs      int      `name:"qps" default:"1" least:"1" most:"1024" help:"Queue pairs per connection (default 1)."`
	GID      int      `name:"gid-index" default:"-1" least:"-1" most:"1024" help:"GID index on every host (default -1: perftest's choice)."`
	Devices  []string `placeholder:"NAME,…" help:"RDMA devices, in the order of rails; mlx5_0/2 is port 2 (default: all active ports, by name)."`
	Cuda     bool     `help:"Measure between GPU memories (--use_cuda=N of perftest): GPU N of a host for rail N."`
	Rounds   int      `least:"1" placeholder:"N" help:"Rounds of disjoint pairs per rail, which is how many others each host is measured with (default all up to 17 hosts, 16 of more)."`
	Perftest string   `placeholder:"DIR" help:"Folder of the perftest programs on every host (default: PATH)."`
}

// BenchRDMADoc is the answer of BenchRDMA.
type BenchRDMADoc struct {
	Findings   []finding.Finding `json:"findings"`
	Hosts      []string          `json:"hosts"`
	Iters      int               `json:"iters"`
	Notes      []string          `json:"notes"`
	Pairs      []BenchRDMAPair   `json:"pairs"`
	Programs   []string          `json:"programs"`
	Rails      []BenchRDMARail   `json:"rails"`
	Results    result.Sweeps     `json:"results"`
	Rounds     int               `json:"rounds"` // with those that were repeated
	Seconds    float64           `json:"seconds"`
	SizeBytes  int64             `json:"size_bytes"`  // of the messages that bandwidth was measured with
	SmallBytes int64             `json:"small_bytes"` // and latency

	Table *pairs.Table `json:"-"`
}

// BenchRDMARail is the ports of one number on all hosts.
type BenchRDMARail struct {
	Rail    int      `json:"rail"`
	Ports   []string `json:"ports"`     // host/device/port
	Link    float64  `json:"link_GBps"` // of the slowest port, 0 unknown
	Rate    float64  `json:"median_bandwidth_GBps"`
	Both    float64  `json:"median_both_GBps"`
	Latency float64  `json:"median_latency_us"`
}

// BenchRDMAPair is one direction between two ports.
type BenchRDMAPair struct {
	Rail    int     `json:"rail"`
	From    string  `json:"from"` // sends: host/device/port
	To      string  `json:"to"`
	Rate    float64 `json:"bandwidth_GBps"`
	Both    float64 `json:"both_GBps"` // with the other direction at the same time
	Latency float64 `json:"latency_us"`
	Failed  string  `json:"failed,omitempty"`
}

// Wrong reports findings that are more than notes.
func (d *BenchRDMADoc) Wrong() bool { return finding.Serious(d.Findings) }

// tests are what a pair runs: each way alone, both at once, and latency.
func (q *BenchRDMA) tests() (bw, lat rdma.Test, err error) {
	bw = rdma.Test{Program: rdma.Program(q.Verb, false), Iters: q.Iters, QPs: q.QPs, GID: q.GID}
	lat = rdma.Test{Program: rdma.Program(q.Verb, true), Iters: q.Iters, QPs: 1, GID: q.GID, Latency: true}
	if bw.Size, err = q.Size.bytes(); err != nil {
		return bw, lat, fmt.Errorf("--size: %w", err)
	}
	if lat.Size, err = q.Small.bytes(); err != nil {
		return bw, lat, fmt.Errorf("--small: %w", err)
	}
	for _, s := range []unit.Bytes{bw.Size, lat.Size} {
		if s < 1 || s > unit.GiB {
			return bw, lat, fmt.Errorf("messages of %v; expected 1 byte to 1 GiB", s)
		}
	}
	return bw, lat, nil
}

// RunOn measures between the hosts of a job, one rank each.
func (q BenchRDMA) RunOn(ctx context.Context, env Env, with Programs,
	on Ranks[*BenchRDMADoc],
) (doc *BenchRDMADoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	bw, lat, err := q.tests()
	if err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid = func(n int) error {
		if n < 2 {
			return errors.New("one rank has no partner; expected two or more, one per host")
		}
		return nil
	}
	t.Memory, t.Advice = func(int) unit.Bytes { return 2 * bw.Size }, "a smaller --size"
	t.Same = fmt.Sprint("rdma", q)
	t.Star = func(s *engine.Star, keep func([]byte) error) error {
		w := checkWorker{star: s, with: with, rdma: &rdmaWorker{q: &q, with: with, bw: bw, lat: lat}}
		if s.Rank() != 0 {
			return w.serve(ctx)
		}
		h := newCheckHub(w)
		defer h.end()
		if doc, err = q.lead(ctx, env, h); err != nil {
			return err
		}
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// rdmaTime is how long a host may take to list its ports.
const rdmaTime = 20 * time.Second

// lead is the measurement as rank 0 leads it.
func (q *BenchRDMA) lead(ctx context.Context, env Env, h *checkHub) (*BenchRDMADoc, error) {
	begin := time.Now()
	orders, job := map[int]checkOrder{}, bench.NewSession()
	for r := range h.members {
		orders[r] = checkOrder{Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}
	}
	env.progress("ports of all hosts")
	m := &rdmaHub{checkHub: h, q: q, names: rankNames(h.members)}
	m.collect(h.ask(ctx, orders, rdmaTime))
	env.progress("")
	if err := m.possible(); err != nil {
		return nil, failure.Cannot(err)
	}
	c := m.turns(env)
	table, err := c.measure(ctx, m.rounds())
	env.progress("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	d := m.document(table)
	d.Rounds, d.Seconds = c.turns, time.Since(begin).Seconds()
	return d, nil
}

// document is what was measured, and what stands out of it.
func (m *rdmaHub) document(t *pairs.Table) *BenchRDMADoc {
	bw, lat := m.rdma.bw, m.rdma.lat
	d := &BenchRDMADoc{
		Iters: m.q.Iters, Programs: []string{rdma.Program(m.q.Verb, false), rdma.Program(m.q.Verb, true)},
		SizeBytes: int64(bw.Size), SmallBytes: int64(lat.Size), Table: t,
		Findings: append(m.absent, t.Findings()...), Notes: orEmpty(m.notes), Pairs: []BenchRDMAPair{},
		Rails: []BenchRDMARail{}, Results: result.Sweeps{},
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Kind == pairs.CutOff || f.Kind == pairs.Unfinished {
			f.Fix = "The same command without busbar: " + rdma.Program(m.q.Verb, false) +
				" -d DEVICE on one host, and with the address of that host on the other. show_gids lists GID indices; " +
				"ibv_devinfo the state of ports."
		}
	}
	for _, x := range m.members {
		if !slices.Contains(d.Hosts, x.Host) {
			d.Hosts = append(d.Hosts, x.Host)
		}
	}
	for k := range m.rails {
		r := BenchRDMARail{Rail: k}
		part := &pairs.Table{}
		for i, e := range m.ends {
			if e.rail == k {
				r.Ports = append(r.Ports, t.Names[i])
				if g := e.GBps; g > 0 && (r.Link == 0 || g < r.Link) {
					r.Link = g
				}
			}
		}
		for _, c := range t.Cells {
			if m.ends[c.From].rail != k {
				continue
			}
			d.Pairs = append(d.Pairs, BenchRDMAPair{
				Rail: k, From: t.Names[c.From], To: t.Names[c.To], Rate: c.Rate.GBps(), Both: c.Both.GBps(),
				Latency: c.Latency.Micros(), Failed: c.Failed,
			})
			if c.Failed == "" {
				part.Cells = append(part.Cells, c)
				d.Results = append(d.Results, m.sweeps(t, c)...)
			}
		}
		_, r.Rate, _ = part.Extremes(pairs.GBps)
		_, r.Both, _ = part.Extremes(pairs.BothGBps)
		_, r.Latency, _ = part.Extremes(pairs.Micros)
		d.Rails = append(d.Rails, r)
		if f, slow := m.slowRail(&r); slow {
			d.Findings = append(d.Findings, f)
		}
	}
	return d
}

// possible says why nothing can be measured.
func (m *rdmaHub) possible() error {
	for _, members := range m.rails {
		if len(members) > 1 {
			return nil
		}
	}
	var why []string
	for _, f := range m.absent {
		why = append(why, f.Text)
	}
	if len(why) == 0 {
		why = []string{"no two hosts have an active RDMA port of the same rail"}
	}
	why = distinct(why)
	return fmt.Errorf("nothing can be measured: %s", strings.Join(why[:min(len(why), 4)], "; "))
}

// rdmaPort is an active RDMA port of a host.
type rdmaPort struct {
	Device string  `json:"device"`
	Port   int     `json:"port"`
	GBps   float64 `json:"GBps"` // of its link, 0 unknown
	// Layer is InfiniBand, Ethernet or empty, and Slot the rate of its NIC's PCIe slot in GB/s, 0 unknown.
	Layer string  `json:"layer,omitempty"`
	Slot  float64 `json:"slot_GBps,omitempty"`
}

// rdmaOrder is what a host does of a test.
type rdmaOrder struct {
	End     rdma.End `json:"end"`
	Job     string   `json:"job,omitempty"` // whose ranks may share ports
	Latency bool     `json:"latency"`
	Both    bool     `json:"both"`
	// Server is where the server is, of the client: an address, for what is none might be an option of the program.
	Server netip.AddrPort `json:"server"`
	TCP    int            `json:"tcp"`
	Failed bool           `json:"failed"` // of the server's end: its client came to none
}

// rdmaWorker runs sides of tests on a host.
type rdmaWorker struct {
	q       *BenchRDMA
	with    Programs
	bw, lat rdma.Test
	server  *rdma.Server
	known   []rdmaPort // as told to rank 0
	taken   []io.Closer
}

// ports lists the ports of this host, and says why it has none that can be measured.
func (w *rdmaWorker) ports(ctx context.Context) ([]rdmaPort, error) {
	if w.with.Sys == nil || w.with.Run == nil || w.with.Find == nil {
		return nil, errors.New("no programs can be run here")
	}
	for _, t := range []*rdma.Test{&w.bw, &w.lat} {
		path, err := w.with.Find(w.q.Perftest, rdma.Program(w.q.Verb, t.Latency))
		if err != nil {
			return nil, fmt.Errorf("%s of perftest is not installed: %w; give its folder with --perftest DIR",
				rdma.Program(w.q.Verb, t.Latency), err)
		}
		t.Program = path
	}
	if w.q.Cuda {
		var help strings.Builder
		_ = w.with.Run(ctx, 5*time.Second, []string{w.bw.Program, "--help"}, &help) // its exit code says nothing
		if !strings.Contains(help.String(), "use_cuda") {
			return nil, fmt.Errorf("%s was built without CUDA: its --help has no --use_cuda; leave --cuda out, or build "+
				"perftest with CUDA_H_PATH", w.bw.Program)
		}
	}
	all, err := sysfs.Ports(w.with.Sys)
	if err != nil {
		return nil, err
	}
	return pickPorts(all, w.q.Devices)
}

// pickPorts are the active RDMA ports, or those that were asked for.
func pickPorts(all []sysfs.PortState, want []string) ([]rdmaPort, error) {
	up, down := map[string]rdmaPort{}, []string{}
	var names []string
	for _, p := range all {
		if !p.RDMA {
			continue
		}
		device, number, _ := strings.Cut(p.Name, "/")
		n, err := strconv.Atoi(number)
		if !p.Up || err != nil {
			down = append(down, p.Name+" is "+p.State)
			continue
		}
		up[p.Name] = rdmaPort{device, n, p.Rate.GBps(), p.Layer, hardware.PCIeRate(p.SlotGTs, p.SlotLanes).GBps()}
		names = append(names, p.Name)
	}
	natural.Sort(names)
	if len(want) > 0 {
		names = nil
		for _, name := range want {
			if !strings.Contains(name, "/") {
				name += "/1"
			}
			if _, ok := up[name]; !ok {
				return nil, fmt.Errorf("no active RDMA port %s below /sys/class/infiniband%s", name, among(down))
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w below /sys/class/infiniband%s", errNoPort, among(down))
	}
	list := make([]rdmaPort, len(names))
	for i, n := range names {
		list[i] = up[n]
	}
	return list, nil
}

var errNoPort = errors.New("no active RDMA port")

func among(down []string) string {
	if len(down) == 0 {
		return ""
	}
	return " (" + strings.Join(down[:min(len(down), 4)], ", ") + ")"
}

// do does one order; what fails is part of the reply.
func (w *rdmaWorker) do(ctx context.Context, do string, o *rdmaOrder, r *checkReply) error {
	start := func(ctx context.Context, args []string, out io.Writer) error {
		return w.with.Run(ctx, time.Hour, args, out)
	}
	test := func() rdma.Test {
		t := w.bw
		if o.Latency {
			t = w.lat
		}
		t.Both = o.Both
		return t
	}
	switch do {
	case "rdma-ports":
		var err error
		r.Ports, err = w.ports(ctx)
		w.known = r.Ports
		r.Portless = errors.Is(err, errNoPort)
		if err == nil {
			if err = w.take(o.Job); err != nil {
				r.Ports, w.known = nil, nil
			}
		}
		return err
	case "rdma-serve":
		if err := w.own(o.End); err != nil {
			return err
		}
		_ = w.end(true) // one that was forgotten
		s, err := rdma.Serve(ctx, start, test(), o.End)
		if err != nil {
			return err
		}
		w.server, r.TCP = s, s.TCP
	case "rdma-run":
		if err := w.own(o.End); err != nil {
			return err
		}
		row, err := rdma.Run(ctx, start, test(), o.End, o.Server.Addr().String(), o.TCP)
		if err != nil {
			return err
		}
		r.Cells = []pairs.Measure{{Rate: row.Rate, Latency: row.Typical}}
	case "rdma-end":
		return w.end(o.Failed)
	}
	return nil
}

// own refuses a port that is not one of those that this host told: who asks may be another's agent.
func (w *rdmaWorker) own(e rdma.End) error {
	if !slices.ContainsFunc(w.known, func(p rdmaPort) bool { return p.Device == e.Device && p.Port == e.Port }) {
		return fmt.Errorf("%.60q, port %d: this host has no such port", e.Device, e.Port)
	}
	return nil
}

// end ends the server that runs, if one does.
func (w *rdmaWorker) end(failed bool) error {
	if w.server == nil {
		return nil
	}
	s := w.server
	w.server = nil
	if err := s.End(failed); failed {
		return err
	}
	return nil
}

// rdmaEnd is a port of a host, as pairs know it.
type rdmaEnd struct {
	rdmaPort
	rank, rail int
}

// rdmaHub is rank 0's side of BenchRDMA.
type rdmaHub struct {
	*checkHub
	q      *BenchRDMA
	names  []string // of the ranks
	ends   []rdmaEnd
	rails  [][]int // the ends of each
	absent []finding.Finding
	notes  []string

	expects expectation // what rails are held against
	brief   bool        // neither both ways at once nor latency the other way

	session string // of the results
	when    time.Time
}

func (m *rdmaHub) portName(e rdmaEnd) string {
	return fmt.Sprintf("%s/%s/%d", m.names[e.rank], e.Device, e.Port)
}

// collect makes rails of what hosts have. One that has fewer ports than most is a finding.
func (m *rdmaHub) collect(replies map[int]checkReply) {
	count := map[int]int{}
	usual := 0
	for r := range m.members {
		if n := len(replies[r].Ports); n > 0 {
			if count[n]++; count[n] > count[usual] || count[n] == count[usual] && n > usual {
				usual = n
			}
		}
	}
	for r, member := range m.members {
		x, ok := replies[r]
		why := x.Failed
		switch {
		case !ok:
			why = m.lost[r]
		case why == "" && len(x.Ports) < usual:
			why = fmt.Sprintf("has %d active RDMA ports; most hosts have %d", len(x.Ports), usual)
		}
		if why != "" {
			m.absent = append(m.absent, finding.Finding{
				ID: "rdma-ports:" + member.Host, Kind: "rdma-ports", Severity: finding.Error, Confidence: 1, Where: member.Host,
				Nodes: []string{member.Host}, Ranks: []int{r}, Text: member.Host + ": " + why,
				Fix: "ibv_devinfo shows the ports and their states; ibstat and the subnet manager's log, or the switch, say why " +
					"one is not ACTIVE.",
			})
		}
		for k, p := range x.Ports {
			if len(m.rails) <= k {
				m.rails = append(m.rails, nil)
			}
			m.rails[k] = append(m.rails[k], len(m.ends))
			m.ends = append(m.ends, rdmaEnd{p, r, k})
		}
	}
}

// rdmaRounds is how many rounds of a rail are measured where there are more.
const rdmaRounds = 16

// rounds are those of all rails, one rail after the other.
func (m *rdmaHub) rounds() (list [][][2]int) {
	most := m.q.Rounds
	if most == 0 {
		most = rdmaRounds
	}
	for _, members := range m.rails {
		if len(members) < 2 {
			continue
		}
		if all := pairs.Count(len(members)); most < all {
			m.notes = append(m.notes, fmt.Sprintf("each port was measured with about %d of %d others; --rounds %d measures all",
				most, len(members)-1, all))
		}
		for _, round := range checkSchedule(len(members), most) {
			var turn [][2]int
			for _, p := range round {
				turn = append(turn, [2]int{members[p[0]], members[p[1]]})
			}
			list = append(list, turn)
		}
	}
	m.notes = slices.Compact(m.notes)
	return list
}

// turn measures disjoint pairs of ports: each way alone, both ways at once, and latency.
func (m *rdmaHub) turn(ctx context.Context, list [][2]int,
	limit time.Duration,
) (cells []pairs.Measure, took []time.Duration) {
	failed := make([]string, len(list))
	took = make([]time.Duration, len(list))
	got := make([][2]pairs.Measure, len(list))
	for i, p := range list {
		got[i] = [2]pairs.Measure{{From: p[0], To: p[1]}, {From: p[1], To: p[0]}}
	}
	for _, step := range []struct {
		from          int // which of a pair sends
		latency, both bool
	}{{0, true, false}, {0, false, false}, {1, false, false}, {1, true, false}, {0, false, true}} {
		if m.brief && (step.both || step.latency && step.from == 1) {
			continue
		}
		begin := time.Now()
		rows := m.step(ctx, list, failed, step.from, rdmaOrder{Latency: step.latency, Both: step.both}, limit)
		for i, row := range rows {
			if failed[i] != "" {
				continue
			}
			switch cell := &got[i][step.from]; {
			case step.latency && m.brief:
				got[i][0].Latency, got[i][1].Latency = row.Latency, row.Latency
			case step.latency:
				cell.Latency = row.Latency
			case step.both:
				got[i][0].Both, got[i][1].Both = row.Rate, row.Rate
			default:
				cell.Rate = row.Rate
			}
			took[i] += time.Since(begin)
		}
	}
	for i := range list {
		for k := range got[i] {
			if failed[i] != "" {
				got[i][k], took[i] = pairs.Measure{From: got[i][k].From, To: got[i][k].To, Failed: failed[i]}, 0
			}
			cells = append(cells, got[i][k])
		}
	}
	return cells, took
}

// step runs one test between pairs: servers first, then clients, and then servers end.
func (m *rdmaHub) step(ctx context.Context, list [][2]int, failed []string, from int, what rdmaOrder,
	limit time.Duration,
) []pairs.Measure {
	serve, run, end := map[int]checkOrder{}, map[int]checkOrder{}, map[int]checkOrder{}
	order := func(do string, e rdmaEnd, o rdmaOrder) checkOrder {
		o.End = rdma.End{Device: e.Device, Port: e.Port, GPU: -1}
		if m.q.Cuda {
			o.End.GPU = e.rail
		}
		return checkOrder{Do: do, RDMA: &o}
	}
	sides := make([][2]rdmaEnd, len(list)) // client, server
	for i, p := range list {
		client, server := m.ends[p[from]], m.ends[p[1-from]]
		if m.q.Verb == "read" { // bytes come to the client
			client, server = server, client
		}
		sides[i] = [2]rdmaEnd{client, server}
		if failed[i] == "" {
			serve[server.rank] = order("rdma-serve", server, what)
		}
	}
	why := func(i, rank int, replies map[int]checkReply) bool {
		x, ok := replies[rank]
		switch {
		case !ok:
			failed[i] = m.members[rank].Host + ": " + m.lost[rank]
		case x.Failed != "":
			failed[i] = x.Failed
		}
		return failed[i] == ""
	}
	ready := m.ask(ctx, serve, limit)
	for i, s := range sides {
		if failed[i] != "" || !why(i, s[1].rank, ready) {
			continue
		}
		what.Server, what.TCP = m.star.Address(s[1].rank), ready[s[1].rank].TCP
		o := order("rdma-run", s[0], what)
		o.with = s[1].rank
		run[s[0].rank] = o
	}
	rows := make([]pairs.Measure, len(list))
	ran := m.ask(ctx, run, limit)
	for i, s := range sides {
		if _, asked := run[s[0].rank]; asked && failed[i] == "" && why(i, s[0].rank, ran) && len(ran[s[0].rank].Cells) == 1 {
			rows[i] = ran[s[0].rank].Cells[0]
		}
		if _, serves := serve[s[1].rank]; serves {
			end[s[1].rank] = order("rdma-end", s[1], rdmaOrder{Failed: failed[i] != ""})
		}
	}
	for rank, x := range m.ask(ctx, end, limit) { // the server may know better what failed
		for i, s := range sides {
			if s[1].rank == rank && failed[i] != "" && x.Failed != "" && !strings.Contains(failed[i], x.Failed) {
				failed[i] += "; at the other side: " + x.Failed
			}
		}
	}
	for i, s := range sides { // a program that ended because the other's host died says that it cannot read
		if lost := m.lost[s[1].rank]; failed[i] != "" && lost != "" && !strings.Contains(failed[i], lost) {
			failed[i] = fmt.Sprintf("%s: %s; %s", m.members[s[1].rank].Host, lost, failed[i])
		}
	}
	return rows
}

// sweeps are what a direction of a pair showed, as files of results keep it.
func (m *rdmaHub) sweeps(t *pairs.Table, c pairs.Measure) (list result.Sweeps) {
	if m.session == "" {
		m.session, m.when = bench.NewSession(), time.Now().UTC().Truncate(time.Second)
	}
	hosts := []string{m.members[m.ends[c.From].rank].Host, m.members[m.ends[c.To].rank].Host}
	add := func(program string, size unit.Bytes, us float64, both bool) {
		if !(us > 0) {
			return
		}
		s := &result.Sweep{
			Source: result.Measured, Op: coll.SendRecv, Dtype: coll.Uint8.String(), Ranks: 2, Nodes: 2, PerNode: 1,
			Hosts: cluster.FormatHosts(hosts), Transport: result.RDMA,
			Tool: "perftest " + program, Session: m.session, When: m.when,
			Env:    map[string]string{"from": t.Names[c.From], "to": t.Names[c.To], "both": strconv.FormatBool(both)},
			Points: []result.Point{{Size: size, Out: &result.Timing{Time: result.Times{Mean: us}, Runs: m.q.Iters}}},
		}
		if hosts[0] == hosts[1] {
			s.Nodes, s.PerNode = 1, 2
		}
		list = append(list, s)
	}
	bw, lat := m.rdma.bw, m.rdma.lat
	add(rdma.Program(m.q.Verb, false), bw.Size, float64(bw.Size)/float64(c.Rate)*1e6, false)
	add(rdma.Program(m.q.Verb, false), bw.Size, float64(bw.Size)/float64(c.Both)*1e6, true)
	add(rdma.Program(m.q.Verb, true), lat.Size, c.Latency.Micros(), false)
	return list
}

const rdmaSlowRail finding.Kind = "rdma-slow-rail"

// slowRail is the finding about a rail whose ports are all slow: none of them stands out then. The rail is held against
// the prediction for its slowest port. What small messages get is bound by their number, of which nothing is predicted.
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
		ID: fmt.Sprintf("%s:%d", rdmaSlowRail, r.Rail), Kind: rdmaSlowRail, Severity: finding.Warn, Confidence: 1,
		Factor: r.Rate / want, Figure: "bandwidth", Where: fmt.Sprintf("rail %d", r.Rail),
		Text: fmt.Sprintf("the median pair of rail %d moves %.1f GB/s; %s for links of %.1f GB/s and %s says %.1f, and "+
			"less than %.1f is beyond its error bar (a factor of %.2f)",
			r.Rail, r.Rate, words, from.Port.GBps(), slot, want, want/margin, margin),
		Fix: "Look at the PCIe width and generation of the NICs (lspci -vv), ACS and the IOMMU, the MTU, and the NUMA node " +
			"of the processors; --qps 4 tells a limit of one queue pair.",
	}, true
}

// stream is what a port is expected to carry: by the cluster's NIC of that name, or of that rail where it has as many
// as there are rails, else by what the host says.
func (x expectation) stream(e rdmaEnd, rails int) predict.Stream {
	s := predict.Stream{
		Net: cluster.InfiniBand, Port: unit.Rate(e.GBps * float64(unit.GBps)), Slot: unit.Rate(e.Slot * float64(unit.GBps)),
	}
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

// PortsAlone keeps the RDMA ports of a host for one measurement: two at once would each see a part of the rate. Names
// are abstract addresses of Linux, which end with their process, however it ends. The ranks of one job share ports.
type PortsAlone struct {
	Prefix string // of the names
}

// aloneTime is how long who holds a port has to say for which job.
const aloneTime = time.Second

// Take takes a port for a job until it is closed.
func (a *PortsAlone) Take(port, job string) (io.Closer, error) {
	name := "@" + a.Prefix + port
	l, err := net.Listen("unix", name)
	if err != nil {
		if job != "" && holder(name) == job {
			return nil, nil
		}
		return nil, fmt.Errorf("%s is being measured by another busbar on this host, and two at once would measure each "+
			"other; wait for its end", port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(aloneTime))
			_, _ = io.WriteString(c, job) // who does not read is told that the port is taken
			_ = c.Close()
		}
	}()
	return l, nil
}

// holder is the job for which a port is held, empty where nobody says.
func holder(name string) string {
	c, err := net.DialTimeout("unix", name, aloneTime)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(aloneTime))
	job, _ := io.ReadAll(io.LimitReader(c, 256))
	return string(job)
}

// take takes this host's ports for a job, all or none.
func (w *rdmaWorker) take(job string) error {
	w.free()
	if w.with.Alone == nil {
		return nil
	}
	for _, p := range w.known {
		c, err := w.with.Alone.Take(fmt.Sprintf("%s/%d", p.Device, p.Port), job)
		if err != nil {
			w.free()
			return err
		}
		if c != nil {
			w.taken = append(w.taken, c)
		}
	}
	return nil
}

// free lets others measure.
func (w *rdmaWorker) free() {
	for _, c := range w.taken {
		_ = c.Close()
	}
	w.taken = nil
}
