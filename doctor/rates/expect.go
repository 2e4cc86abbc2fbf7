package rates

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Expect sets beside every weighed row what predict says of it. of gives a row's predictor, an error where there is
// none. It returns the cluster that was predicted on, and where nothing could be predicted, why.
func (r *Report) Expect(of func(*Row) (*predict.Predictor, error)) (on, why string) {
	for i := range r.Jobs {
		for k := range r.Jobs[i].Rows {
			row := &r.Jobs[i].Rows[k]
			if row.Transfer == 0 {
				continue
			}
			p, err := of(row)
			if err == nil {
				err = row.Expect(p)
			}
			if err != nil {
				why = err.Error()
				continue
			}
			on = p.Cluster.Name
		}
	}
	if on != "" {
		why = ""
	}
	return on, why
}

// Shape is how many nodes the row's communicator has, and how many ranks on each.
func (r *Row) Shape() (nodes, ranks int) {
	nodes = max(r.Nodes, len(unique(r.hosts)), 1)
	return nodes, max(r.Ranks/nodes, 1)
}

// Where tells rows apart that stand elsewhere on a cluster.
func (r *Row) Where() string { return fmt.Sprint(r.Ranks, r.Nodes, r.hosts, r.locals) }

// Layout is where the row's ranks are on a cluster: on the hosts that reported them, else on the first ones.
func (r *Row) Layout(c *cluster.Cluster) (nccl.Layout, error) {
	gpus := map[string][]int{}
	index := map[string]int{}
	for h, devs := range nccl.GPUs(c) {
		gpus[c.Hosts[h].Name], index[c.Hosts[h].Name] = devs, h
	}
	l := make(nccl.Layout, 0, len(r.hosts))
	for i, h := range r.hosts {
		if local := r.locals[i]; local >= 0 && local < len(gpus[h]) {
			l = append(l, nccl.Rank{Host: index[h], GPU: gpus[h][local]})
		}
	}
	if len(l) == r.Ranks {
		return l, nil
	}
	nodes, ranks := r.Shape()
	return nccl.Block(c, nodes, ranks)
}

// Expect asks for the algorithm and protocol that NCCL took, and judges the row anew.
func (r *Row) Expect(p *predict.Predictor) error {
	kind, err := coll.ParseKind(r.Op)
	if err != nil {
		return err
	}
	ask := predict.Query{Kind: kind, Type: coll.BFloat16, Sizes: []unit.Bytes{max(r.Bytes, 8)}, Proto: r.Proto}
	if r.Algo != "" {
		ask.Algos = []string{r.Algo}
	}
	a, err := p.Ask(ask)
	if err == nil && len(a.Rows) == 0 || err != nil && r.Algo != "" {
		ask.Algos, ask.Proto = nil, "" // one that the model has not for this layout: NCCL's own choice instead
		a, err = p.Ask(ask)
	}
	switch {
	case err != nil:
		return err
	case len(a.Rows) == 0:
		return fmt.Errorf("%s of %s cannot be predicted", r.Op, r.Bytes)
	}
	x := &a.Rows[0]
	_, measured := p.MeasuredMargin(coll.Op{Kind: kind, Type: ask.Type, Bytes: ask.Sizes[0]})
	margin := max(float64(x.High)/float64(x.Time), besideJob)
	r.Expected = &Expected{
		Time: x.Time, Low: unit.Time(float64(x.Time) / margin), High: unit.Time(float64(x.Time) * margin), BusBW: x.BusBW,
		Algo: x.Algo, Proto: x.Proto, Limit: x.Limit.Text, Calibrated: measured,
	}
	r.judge()
	return nil
}

// besideJob is the least error bar of a collective in a job: bars are of those that run alone, and it runs beside other
// communicators and kernels. It is chosen, between what repeated measurements differ by and what half a rate takes
// longer.
const besideJob = 1.3
