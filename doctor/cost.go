package doctor

import (
	"fmt"
	"maps"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// costSizes are the sizes of an all-reduce at which a cost is predicted.
var costSizes = []unit.Bytes{64 * unit.KiB, 1 * unit.MiB, 16 * unit.MiB, 256 * unit.MiB}

// slower predicts how much slower an all-reduce is with a fault than without: the
// fault as a change of the machine, of the settings, or both. The text is empty
// where the machine is not known well enough or the fault costs nothing there.
func (c *Case) slower(fault func(s *hardware.Spec), env map[string]string) string {
	m := c.machine()
	if m == nil {
		return ""
	}
	good, err := c.times(m, nil, c.settings(env))
	if err != nil {
		return ""
	}
	with := c.settings(nil)
	maps.Copy(with, env)
	bad, err := c.times(m, fault, with)
	if err != nil {
		return ""
	}
	last := len(costSizes) - 1
	worst := float64(bad[last]) / float64(max(good[last], 1))
	if worst < 1.1 || worst > 1e4 {
		return ""
	}
	from := last
	for i := last; i >= 0; i-- {
		if float64(bad[i])/float64(max(good[i], 1)) < 1+(worst-1)/2 {
			break
		}
		from = i
	}
	where := "at all sizes"
	if from > 0 {
		where = fmt.Sprintf("from %v on", costSizes[from])
	}
	return fmt.Sprintf("about %.2gx slower all-reduce %s (predicted for %v)", worst, where, m)
}

// settings are NCCL's that change a prediction, but those whose effect is asked for.
func (c *Case) settings(but map[string]string) map[string]string {
	env := map[string]string{}
	for _, name := range []string{
		"NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_P2P_DISABLE", "NCCL_NVLS_ENABLE",
	} {
		if e := c.Env(name); e != nil {
			if _, ok := but[name]; !ok {
				env[name] = e.Value
			}
		}
	}
	return env
}

// priced is an answer that was already asked for.
type priced struct {
	times []unit.Time
	err   error
}

// times predicts an all-reduce of each size, once for each machine and settings.
func (c *Case) times(m *machine, fault func(s *hardware.Spec), env map[string]string) ([]unit.Time, error) {
	s := m.spec
	if fault != nil {
		fault(&s)
	}
	key := fmt.Sprint(s, env)
	p, ok := c.prices[key]
	if !ok {
		p.times, p.err = m.times(s, env)
		c.prices[key] = p
	}
	return p.times, p.err
}

func (m *machine) times(s hardware.Spec, env map[string]string) ([]unit.Time, error) {
	cl, err := s.Cluster(m.nodes)
	if err != nil {
		return nil, err
	}
	layout, err := nccl.Block(cl, m.nodes, m.per)
	if err != nil {
		return nil, err
	}
	p, err := predict.New(cl, layout, nccl.Newest, env, nil)
	if err != nil {
		return nil, err
	}
	a, err := p.Ask(predict.Query{Kind: coll.AllReduce, Type: coll.Float, Sizes: costSizes})
	if err != nil {
		return nil, err
	}
	if len(a.Rows) != len(costSizes) {
		return nil, fmt.Errorf("%d rows for %d sizes", len(a.Rows), len(costSizes))
	}
	list := make([]unit.Time, len(a.Rows))
	for i, r := range a.Rows {
		list[i] = r.Time
	}
	return list, nil
}

// or is the first text that says something.
func or(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// costs say what findings cost: predicted where the machine is known, else as far
// as can be said of all machines.
var costs = map[string]func(c *Case) string{
	"ib-disabled":        sockets,
	"socket-fallback":    sockets,
	"container-no-rdma":  sockets,
	"libfabric":          sockets,
	"ib-device-unusable": sockets,
	"gdr-off": func(c *Case) string {
		return or(c.slower(func(s *hardware.Spec) { s.GDR = cluster.No }, nil), "usually half of the NIC's rate or less")
	},
	"p2p-off": func(c *Case) string {
		return or(c.slower(nil, map[string]string{"NCCL_P2P_DISABLE": "1"}), "through host memory GPUs exchange 5 to 20 "+
			"GB/s instead of 10 to 50 over PCIe, or 100 to 400 over NVLink where they have it")
	},
	"single-nic": func(c *Case) string { return c.slower(func(s *hardware.Spec) { s.NICs = 1 }, nil) },
	"nvls-failed": func(c *Case) string {
		return or(c.slower(nil, map[string]string{"NCCL_NVLS_ENABLE": "0"}),
			"without NVLS an all-reduce inside a node is up to 1.3x slower at large sizes")
	},
	"channels-reduced": func(c *Case) string {
		return c.slower(nil, c.set("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"))
	},
	"algorithm-forced": func(c *Case) string { return c.slower(nil, c.set("NCCL_ALGO", "NCCL_PROTO")) },
	"graph-search":     func(*Case) string { return "one channel instead of many: 5 to 10x slower at large sizes" },
	"bond-one-port": func(c *Case) string {
		return or(c.slower(func(s *hardware.Spec) { s.Port /= 2 }, nil), "half of the bond's rate")
	},
}

// sockets is what sockets cost where RDMA could be: one Ethernet port of at most
// 100 Gb/s, through host memory.
func sockets(c *Case) string {
	return or(c.slower(func(s *hardware.Spec) {
		s.Kind, s.GDR, s.NICs, s.Port = cluster.Ethernet, cluster.No, 1, min(s.Port, 100*unit.Gbps)
	}, nil), "TCP reaches 1 to 4 GB/s per host, RDMA 12 GB/s (100 Gb/s) to 50 GB/s (400 Gb/s) per NIC")
}

// set are the values of settings that are there.
func (c *Case) set(names ...string) map[string]string {
	env := map[string]string{}
	for _, n := range names {
		if e := c.Env(n); e != nil {
			env[n] = e.Value
		}
	}
	return env
}

// cost fills the cost of a finding that has none.
func (c *Case) cost(f *finding.Finding) {
	if price := costs[f.ID]; price != nil && f.Cost == "" && f.Severity != finding.Note {
		f.Cost = price(c)
	}
}
