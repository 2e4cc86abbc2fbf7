package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// NodeSettings are what NCCL must be told on nodes of a type: which NICs carry GPU traffic,
// where it would take others too.
func NodeSettings(t *cluster.NodeType, net cluster.NetKind) []Setting {
	rails := t.Rails()
	var use, leave []string
	sockets := net == cluster.Ethernet
	for _, d := range t.Of(cluster.NIC) {
		dev := &t.Devices[d]
		if dev.Label == "" || dev.NIC == nil || down(dev.NIC) {
			continue // NCCL takes no port that is down
		}
		kind := cmp.Or(dev.NIC.Kind, net)
		if sockets != (kind == cluster.Ethernet) {
			continue // the other transport's
		}
		if kind != cluster.Ethernet && kind != cluster.InfiniBand && kind != cluster.RoCE {
			return nil // a plugin of the vendor picks its own
		}
		if slices.Contains(rails, d) {
			use = append(use, dev.Label)
		} else {
			leave = append(leave, dev.Label)
		}
	}
	if len(use) == 0 || len(leave) == 0 {
		return nil // NCCL's own choice is the same
	}
	s := Setting{
		Name: "NCCL_IB_HCA", Value: "=" + strings.Join(use, ","),
		Reason: fmt.Sprintf("NCCL would also take %s, which no GPU is near: storage or management",
			strings.Join(leave, ", ")),
	}
	if sockets {
		s.Name = "NCCL_SOCKET_IFNAME"
	}
	return []Setting{s}
}

func down(n *cluster.NICInfo) bool {
	for _, p := range n.Ports {
		if p.State != cluster.Down {
			return false
		}
	}
	return len(n.Ports) > 0
}

// worth is the share of a step that a setting must bring to be set, and mostTried the ranks up
// to which settings are tried, each of which is as much work as pricing the job.
const (
	worth     = 0.01
	mostTried = 1 << 14
)

// candidate is a setting to try on the whole step.
type candidate struct {
	name, value, why string
	doubt            bool // the platform may not bear it
}

func candidates(v nccl.Version) [][]candidate {
	algo := func(k coll.Kind, word, why string) candidate {
		return candidate{"NCCL_ALGO", predict.SettingFor(v, k, word), why, false}
	}
	proto := func(word, why string) candidate {
		return candidate{"NCCL_PROTO", predict.SettingFor(v, coll.AllReduce, word), why, false}
	}
	list := [][]candidate{
		{
			algo(coll.AllReduce, "Tree", "trees instead of NCCL's choice"),
			algo(coll.AllReduce, "Ring", "rings instead of NCCL's choice"),
		},
		// Without LL128: a list that names it, or one of exceptions, lifts NCCL's own rule for where it is safe.
		{
			proto("Simple", "no LL or LL128, which NCCL otherwise uses for some sizes"),
			proto("LL,Simple", "no LL128, which NCCL otherwise uses for some sizes"),
		},
		{
			{"NCCL_CROSS_NIC", "0", "rings and trees stay on one rail", false},
			{"NCCL_CROSS_NIC", "1", "rings and trees may change rails", false},
		},
		{
			{"NCCL_MIN_NCHANNELS", "8", "more channels; they take more of the GPU from what it computes meanwhile", false},
			{"NCCL_MIN_NCHANNELS", "16", "more channels; they take more of the GPU from what it computes meanwhile", false},
		},
		{
			{"NCCL_NET_GDR_LEVEL", "PHB", "NICs read and write GPU memory across the host bridge too", true},
			{"NCCL_NET_GDR_LEVEL", "SYS", "NICs read and write GPU memory across sockets too", true},
		},
	}
	return list
}

// Tune sets what makes the whole step faster by a hundredth or more: every candidate is priced
// with the job's own collectives, on top of those that were kept. NCCL's own choice stays where
// none does.
func (p *Plan) Tune(c *cluster.Cluster, l nccl.Layout, v nccl.Version, j *workload.Job, g *step.GPU) error {
	if len(l) < 2 || len(l) > mostTried {
		return nil
	}
	env := map[string]string{}
	price := func() (unit.Span, error) {
		f := step.NewFabric(c, l, j.Split, v)
		f.Env = env
		r, err := step.Step(j, g, f)
		if err != nil {
			return 0, err
		}
		return r.Step, nil
	}
	now, err := price()
	if err != nil {
		return err
	}
	p.Job.Step = now
	for _, group := range candidates(v) {
		var best candidate
		least := now * (1 - worth)
		for _, x := range group {
			env[x.name] = x.value
			// A setting that leaves a collective without an algorithm is no candidate.
			if t, err := price(); err == nil && t < least {
				best, least = x, t
			}
			delete(env, x.name)
		}
		if best.name == "" {
			continue
		}
		s := Setting{
			best.name, best.value, fmt.Sprintf("%s: the step is predicted to take %.4g s instead of %.4g s", best.why,
				least.Seconds(), now.Seconds()),
		}
		if best.doubt {
			s.Reason += "; not every platform can, and on some it is slower: measure it"
			p.Try = append(p.Try, s)
			continue
		}
		p.Settings = append(p.Settings, s)
		env[best.name], now, p.Job.Step = best.value, least, least
	}
	return nil
}
