package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// BenchRDMA measures RDMA between hosts with the programs of perftest, one rail at a time, and names slow hosts, ports and links.
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
func (q BenchRDMA) RunOn(ctx context.Context, env Env, with Programs, on Ranks[*BenchRDMADoc]) (doc *BenchRDMADoc, err error) {
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
		Iters: m.q.Iters, Programs: []string{rdma.Program(m.q.Verb, false), rdma.Program(m.q.Verb, true)}, SizeBytes: int64(bw.Size), SmallBytes: int64(lat.Size), Table: t,
		Findings: append(m.absent, t.Findings()...), Notes: orEmpty(m.notes), Pairs: []BenchRDMAPair{}, Rails: []BenchRDMARail{}, Results: result.Sweeps{},
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Kind == pairs.CutOff || f.Kind == pairs.Unfinished {
			f.Fix = "The same command without busbar: " + rdma.Program(m.q.Verb, false) + " -d DEVICE on one host, and with the address of that host on the other. show_gids lists GID indices; ibv_devinfo the state of ports."
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
			d.Pairs = append(d.Pairs, BenchRDMAPair{Rail: k, From: t.Names[c.From], To: t.Names[c.To], Rate: c.Rate.GBps(), Both: c.Both.GBps(), Latency: c.Latency.Micros(), Failed: c.Failed})
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
