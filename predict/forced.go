package predict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/schedule"
	"busbar.dev/sim"
)

// forced answers what NCCL would do if it were told an algorithm or a protocol.
// It keeps the tables of such settings, which hold for all sizes.
type forced struct {
	p      *Predictor
	tables map[[2]string]*nccl.Table
}

func newForced(p *Predictor) *forced { return &forced{p, map[[2]string]*nccl.Table{}} }

// table is NCCL's table under NCCL_ALGO and NCCL_PROTO; "" leaves one as NCCL has
// it, whatever the environment says.
func (x *forced) table(kind coll.Kind, algo, proto string) (*nccl.Table, error) {
	key := [2]string{algo, proto}
	if t, ok := x.tables[key]; ok {
		return t, nil
	}
	comm := x.p.Plan.Comm
	comm.Env = withSetting(comm.Env, comm.Version, kind, algo, proto)
	t, err := nccl.NewTable(&comm, &x.p.Plan.Graphs)
	if err == nil {
		x.tables[key] = t
	}
	return t, err
}

// withSetting is an environment that says an algorithm and a protocol, or nothing
// about them.
func withSetting(env map[string]string, v nccl.Version, kind coll.Kind, algo, proto string) map[string]string {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, "NCCL_ALGO")
	delete(out, "NCCL_PROTO")
	if algo != "" {
		out["NCCL_ALGO"] = SettingFor(v, kind, ncclWord(algo))
	}
	if proto != "" {
		out["NCCL_PROTO"] = SettingFor(v, kind, ncclWord(proto))
	}
	return out
}

// SettingFor writes a choice in the form that the release understands: since 2.24
// for one collective, so that the others keep theirs (a plain list would leave
// some without any), before for all.
func SettingFor(v nccl.Version, kind coll.Kind, word string) string {
	if !v.CallLists() {
		return word
	}
	if kind == coll.Barrier {
		kind = coll.AllReduce
	}
	return strings.ReplaceAll(kind.String(), "_", "") + ":" + strings.ToLower(word)
}

// ncclWord is NCCL's spelling of an algorithm or protocol.
func ncclWord(name string) string { return ncclWords[name] }

var ncclWords = map[string]string{
	"tree": "Tree", "ring": "Ring", "chain": "Ring", "collnet_direct": "CollNetDirect", "collnet_chain": "CollNetChain",
	"nvls": "NVLS", "nvls_tree": "NVLSTree", "pat": "PAT", sim.LL: "LL", sim.LL128: "LL128", sim.Simple: "Simple",
}

// auto is what NCCL would take, also for what it does by sends and receives.
func (x *forced) auto(op coll.Op) (Setting, error) {
	as := Substitute(op)
	if as.Kind == coll.Hypercube {
		s := x.p.pairs(op)
		s.Algo = "hypercube"
		return s, nil
	}
	return x.p.Auto(as)
}

// paired reports whether NCCL does a collective by sends and receives.
func paired(kind coll.Kind) bool {
	_, ok := callOf(Substitute(coll.Op{Kind: kind}))
	return !ok
}

// native reports whether NCCL itself has an algorithm for a collective.
func (x *forced) native(kind coll.Kind, algo string) bool {
	switch {
	case kind == coll.Hypercube:
		return algo == "hypercube"
	case paired(kind):
		return algo == "direct"
	case kind == coll.Barrier:
		return ncclWord(algo) != "" && algo != "chain"
	case kind == coll.Broadcast, kind == coll.Reduce:
		return algo == "chain" || algo == "ring"
	case kind == coll.AllReduce:
		return ncclWord(algo) != "" && algo != "chain" && algo != "pat"
	}
	return ncclWord(algo) != "" && algo != "chain" && algo != "tree" && algo != "nvls_tree"
}

// named is the setting of an algorithm and a protocol that the user names, either
// of them "" for open.
func (x *forced) named(op coll.Op, algo, proto string) (Setting, error) {
	if algo != "" && !x.native(op.Kind, algo) {
		return x.beyond(op, algo, proto)
	}
	if paired(op.Kind) {
		s, err := x.auto(op)
		if proto == sim.LL128 {
			return s, fmt.Errorf("%s by protocol ll128: %s's sends and receives know ll and simple", op.Kind, x.p.Library())
		}
		if proto != "" {
			s.Proto = proto
		}
		return s, err
	}
	t, err := x.table(op.Kind, algo, proto)
	if err != nil {
		return Setting{}, err
	}
	as := Substitute(op)
	call, _ := callOf(as)
	ch, err := t.Choose(call)
	want := algo
	if algo == "chain" {
		want = "ring"
	}
	switch {
	case x.p.Plan.NRanks == 1:
	case err != nil || want != "" && ch.Algo.String() != want:
		text := op.Kind.String()
		if algo != "" {
			text += " by " + algo
		}
		if proto != "" {
			text += " with protocol " + proto
		}
		return Setting{}, fmt.Errorf("%s: %s %v does not offer it here; its candidates are %s", text, x.p.Library(),
			x.p.Plan.Version, names(x.weighed(op)))
	case proto != "" && ch.Proto.String() != proto:
		return Setting{}, fmt.Errorf("%s by protocol %s: %s %v has no such combination with %s", op.Kind, proto,
			x.p.Library(), x.p.Plan.Version, ch.Algo)
	}
	return Setting{Algo: algoName(ch.Algo, as.Kind), Proto: ch.Proto.String(), Channels: ch.Channels}, nil
}

// beyond is the setting of an algorithm that NCCL does not have: on its channels,
// by the protocol that is fastest.
func (x *forced) beyond(op coll.Op, algo, proto string) (Setting, error) {
	if _, err := schedule.Find(algo); err != nil {
		return Setting{}, err
	}
	list := x.protocols(op)
	if proto != "" {
		list = []string{proto}
	}
	s, err := Setting{}, error(nil)
	least := int64(-1)
	for _, pr := range list {
		try := Setting{Algo: algo, Proto: pr, Channels: max(1, x.p.Plan.Count())}
		r, e := x.price(op, try)
		if e != nil {
			err = e
			continue
		}
		if least < 0 || int64(r.Time) < least {
			s, least = try, int64(r.Time)
		}
	}
	if least < 0 {
		return Setting{}, err
	}
	return s, nil
}

// protocols are those that NCCL allows here: LL128 needs links that keep its
// lines together, whatever the algorithm.
func (x *forced) protocols(op coll.Op) []string {
	list := []string{sim.LL, sim.Simple}
	if t, err := x.table(op.Kind, "", ""); err == nil && t.Est[nccl.AllReduce][nccl.Ring][nccl.LL128].BW > 0 {
		list = append(list, sim.LL128)
	}
	return list
}

// offered are the algorithms that NCCL weighs for a call when nothing is set.
func (x *forced) offered(op coll.Op) []string {
	if paired(op.Kind) {
		s, _ := x.auto(op)
		return []string{s.Algo}
	}
	t, err := x.table(op.Kind, "", "")
	if err != nil {
		return nil
	}
	call, _ := callOf(Substitute(op))
	var list []string
	for _, c := range t.Candidates(call) {
		if n := c.Algo.String(); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// weighed are the algorithms and protocols that NCCL weighs, for a message.
func (x *forced) weighed(op coll.Op) []string {
	var list []string
	for _, s := range x.all(op, "") {
		list = append(list, s.Algo+" "+s.Proto)
	}
	return list
}

// each is one setting for every algorithm that NCCL weighs.
func (x *forced) each(op coll.Op, proto string) []Setting {
	var list []Setting
	for _, a := range x.offered(op) {
		if s, err := x.named(op, a, proto); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// all is one setting for every algorithm and protocol that NCCL weighs, and where
// a protocol is named, also for those that only a setting brings in.
func (x *forced) all(op coll.Op, proto string) []Setting {
	if proto != "" {
		return x.each(op, proto)
	}
	var list []Setting
	if paired(op.Kind) {
		for _, pr := range []string{sim.LL, sim.Simple} {
			if s, err := x.named(op, "", pr); err == nil {
				list = append(list, s)
			}
		}
		return list
	}
	t, err := x.table(op.Kind, "", "")
	if err != nil {
		return nil
	}
	call, _ := callOf(Substitute(op))
	for _, c := range t.Candidates(call) {
		if s, err := x.named(op, c.Algo.String(), c.Proto.String()); err == nil {
			list = append(list, s)
		}
	}
	return list
}
