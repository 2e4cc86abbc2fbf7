package step

import (
	"maps"

	"busbar.dev/coll"
	"busbar.dev/predict"
)

// ncclSetting is a setting of NCCL, and what it does.
type ncclSetting struct{ key, value, text string }

func (s ncclSetting) String() string { return s.key + "=" + s.value }

// algorithms are what NCCL can be told to take instead of its own choice.
func (p *Prepared) algorithms() []ncclSetting {
	return []ncclSetting{
		{"NCCL_ALGO", predict.SettingFor(p.f.version, coll.AllReduce, "Tree"), "trees instead of NCCL's choice"},
		{"NCCL_ALGO", predict.SettingFor(p.f.version, coll.AllReduce, "Ring"), "rings instead of NCCL's choice"},
	}
}

// with is the environment with one more setting; nil where somebody has set it already.
func (f *Fabric) with(s ncclSetting) map[string]string {
	if _, set := f.Env[s.key]; set {
		return nil
	}
	env := maps.Clone(f.Env)
	if env == nil {
		env = map[string]string{}
	}
	env[s.key] = s.value
	return env
}

// BestAlgorithm is the step of the job under the NCCL_ALGO that makes it shortest, and that setting; nil and "" where
// none gains a share of the step over NCCL's own choice. NCCL chooses by a cost model of its own, which knows nothing
// of how fast copies and kernel sockets are: with a faster NIC it may change to an algorithm that is slower.
func (p *Prepared) BestAlgorithm(g *GPU, r *Result, least float64) (best *Result, setting string) {
	if wait, _ := p.f.NetworkWait(r); float64(wait) <= least*float64(r.Step) || r.Ranks > mostTried {
		return nil, ""
	}
	limit := float64(r.Step) * (1 - least)
	for _, s := range p.algorithms() {
		env := p.f.with(s)
		if env == nil {
			continue
		}
		f := NewFabric(p.f.c, p.f.layout, p.j.Split, p.f.version)
		f.Env = env
		// The setting may leave a collective of the job without an algorithm: then it is no choice.
		if x, err := Prepare(p.j, f).Price(g); err == nil && float64(x.Step) < limit {
			best, setting, limit = x, s.String(), float64(x.Step)
		}
	}
	return best, setting
}
