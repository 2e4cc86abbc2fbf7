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
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/natural"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

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
	Server  string   `json:"server"` // of the client: where the server is
	TCP     int      `json:"tcp"`
	Failed  bool     `json:"failed"` // of the server's end: its client came to none
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
			return nil, fmt.Errorf("%s of perftest is not installed: %w; give its folder with --perftest DIR", rdma.Program(w.q.Verb, t.Latency), err)
		}
		t.Program = path
	}
	if w.q.Cuda {
		var help strings.Builder
		_ = w.with.Run(ctx, 5*time.Second, []string{w.bw.Program, "--help"}, &help) // its exit code says nothing
		if !strings.Contains(help.String(), "use_cuda") {
			return nil, fmt.Errorf("%s was built without CUDA: its --help has no --use_cuda; leave --cuda out, or build perftest with CUDA_H_PATH", w.bw.Program)
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
		host, _, err := net.SplitHostPort(o.Server)
		if err == nil {
			_, err = netip.ParseAddr(host) // what is no address might be an option of the program
		}
		if err = errors.Join(err, w.own(o.End)); err != nil {
			return err
		}
		row, err := rdma.Run(ctx, start, test(), o.End, host, o.TCP)
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
				ID: "rdma-ports:" + member.Host, Kind: "rdma-ports", Severity: finding.Error, Confidence: 1, Where: member.Host, Nodes: []string{member.Host}, Ranks: []int{r}, Text: member.Host + ": " + why,
				Fix: "ibv_devinfo shows the ports and their states; ibstat and the subnet manager's log, or the switch, say why one is not ACTIVE.",
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
			m.notes = append(m.notes, fmt.Sprintf("each port was measured with about %d of %d others; --rounds %d measures all", most, len(members)-1, all))
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
func (m *rdmaHub) turn(ctx context.Context, list [][2]int, limit time.Duration) (cells []pairs.Measure, took []time.Duration) {
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
func (m *rdmaHub) step(ctx context.Context, list [][2]int, failed []string, from int, what rdmaOrder, limit time.Duration) []pairs.Measure {
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
			Source: result.Measured, Op: coll.SendRecv, Dtype: coll.Uint8.String(), Ranks: 2, Nodes: 2, PerNode: 1, Hosts: cluster.FormatHosts(hosts), Transport: result.RDMA,
			Tool: "perftest " + program, Session: m.session, When: m.when, Env: map[string]string{"from": t.Names[c.From], "to": t.Names[c.To], "both": strconv.FormatBool(both)},
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
