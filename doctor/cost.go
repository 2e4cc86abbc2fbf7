package doctor

import (
	"cmp"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/unit"
)

// price is what a fault changes: the machine, settings, or both; and what it costs where the machine is not known.
type price struct {
	machine  func(s *hardware.Spec)
	settings map[string]string // with their values; "" is the job's
	usual    string
}

// sockets are what is left where RDMA could be: one Ethernet port of at most 100 Gb/s, through host memory.
var sockets = price{
	machine: func(s *hardware.Spec) {
		s.Kind, s.GDR, s.NICs, s.Port = cluster.Ethernet, cluster.No, 1, min(s.Port, 100*unit.Gbps)
	},
	usual: "TCP reaches 1 to 4 GB/s per host, RDMA 12 GB/s (100 Gb/s) to 50 GB/s (400 Gb/s) per NIC",
}

// prices say what findings cost.
var prices = map[string]price{
	"ib-disabled": sockets, "socket-fallback": sockets, "container-no-rdma": sockets, "libfabric": sockets,
	"ib-device-unusable": sockets,
	"gdr-off": {
		machine: func(s *hardware.Spec) { s.GDR = cluster.No }, usual: "usually half of the NIC's rate or less",
	},
	"single-nic":    {machine: func(s *hardware.Spec) { s.NICs = 1 }},
	"bond-one-port": {machine: func(s *hardware.Spec) { s.Port /= 2 }, usual: "half of the bond's rate"},
	"graph-search":  {usual: "one channel instead of many: 5 to 10x slower at large sizes"},
	"p2p-off": {
		settings: map[string]string{"NCCL_P2P_DISABLE": "1"},
		usual: "through host memory GPUs exchange 5 to 20 GB/s instead of 10 to 50 over PCIe, or 100 to 400 over NVLink " +
			"where they have it",
	},
	"nvls-failed": {
		settings: map[string]string{"NCCL_NVLS_ENABLE": "0"},
		usual:    "without NVLS an all-reduce inside a node is up to 1.3x slower at large sizes",
	},
	"channels-reduced": {
		settings: map[string]string{"NCCL_MAX_NCHANNELS": "", "NCCL_MAX_CTAS": "", "NCCL_MAX_NRINGS": ""},
	},
	"algorithm-forced": {settings: map[string]string{"NCCL_ALGO": "", "NCCL_PROTO": ""}},
}

// cost fills the cost of a finding that has none.
func (c *Case) cost(f *finding.Finding) {
	if p, known := prices[f.ID]; known && f.Cost == "" && f.Severity != finding.Note {
		f.Cost = cmp.Or(c.slower(&p), p.usual)
	}
}

// slower predicts how much slower large all-reduces are with a fault than without. The text is empty where the machine
// is not known well enough or the fault costs nothing there.
func (c *Case) slower(p *price) string {
	m := c.machine()
	if m == nil {
		return ""
	}
	env := c.settings(nil)
	for name, value := range p.settings {
		if e := c.Env(name); value == "" && e != nil {
			value = e.Value
		}
		if value != "" {
			env[name] = value
		}
	}
	faulty := *m
	if p.machine != nil {
		p.machine(&faulty.spec)
	}
	times := m.busBandwidth(c.settings(p.settings)) / faulty.busBandwidth(env)
	if !(times >= 1.1 && times <= 1e4) {
		return ""
	}
	return fmt.Sprintf("about %.2gx slower large all-reduces (predicted for %v)", times, m)
}

// busBandwidth is that of a large all-reduce, 0 where nothing is predicted.
func (m *machine) busBandwidth(env map[string]string) float64 {
	cl, err := m.spec.Cluster(m.nodes)
	if err != nil {
		return 0
	}
	return busBandwidth(cl, m.nodes, m.per, coll.AllReduce, 256*unit.MiB, env)
}

// settings are NCCL's that change a prediction, but some.
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
