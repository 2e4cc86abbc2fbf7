package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Need asks which network a job needs, the inverse of Step: the slowest ports and the fewest NICs for which the step stays
// within some per cent of what it would take if nothing waited for other nodes, and which layer of the fabric to upgrade first.
type Need struct {
	Job
	Within *float64 `default:"5" help:"Tolerated slowdown in percent against a step that never waits for other nodes (default 5)."`
}

// NeedDoc is the answer to Need.
type NeedDoc struct {
	Cluster  string    `json:"cluster"`
	Layout   string    `json:"layout"`
	Model    string    `json:"model"`
	Parallel string    `json:"parallel"`
	Within   float64   `json:"within"`          // as a share: 0.05
	Bound    unit.Span `json:"compute_bound_s"` // the step without any waiting for other nodes
	Endless  NeedRow   `json:"endless"`         // with a network that limits nothing
	Now      NeedRow   `json:"now"`
	Rates    []NeedRow `json:"rates"`    // with ports and cables of other rates, the slowest first
	NICs     []NeedRow `json:"nics"`     // with fewer ports per node, the fewest first
	Upgrades []NeedRow `json:"upgrades"` // with one layer twice as fast, the greatest gain first
	// Slowest and Fewest are the answers; 0 where nothing that was tried is enough.
	Slowest float64 `json:"slowest_Gbps"`
	Fewest  int     `json:"fewest_nics"`
	Text    string  `json:"text"`
	// Misfit says that the job does not fit the GPUs' memory, and what would; "" where it does.
	Misfit string `json:"does_not_fit,omitempty"`
}

// NeedRow is the step on a variant of the cluster.
type NeedRow struct {
	What   string    `json:"what"`
	Gbps   float64   `json:"nic_Gbps,omitempty"`
	NICs   int       `json:"nics_per_node,omitempty"`
	Step   unit.Span `json:"step_s"`
	Over   float64   `json:"over_compute"` // 0.05 is 5% longer
	Gain   float64   `json:"gain,omitempty"`
	Enough bool      `json:"enough"`
	Limit  string    `json:"limit,omitempty"` // of most of what waits
	Now    bool      `json:"now,omitempty"`   // the cluster as it is
}

// Wrong reports that no network that is sold is enough.
func (d *NeedDoc) Wrong() bool { return d.Slowest == 0 }

// endless is how many times as fast a network is whose own rates limit nothing.
const endless = 1e3

// Run prices the step on variants of the cluster.
func (q Need) Run(ctx context.Context, env Env) (*NeedDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	within := *q.Within
	if !(within > 0 && within < 1000) {
		return nil, fmt.Errorf("--within %g; expected per cent, more than 0", within)
	}
	if q.Compare != "" {
		return nil, fmt.Errorf("--compare %s: need asks about one layout; give it with -l", q.Compare)
	}
	t, err := q.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	defer env.working("pricing variants of the cluster")()
	now, err := t.price(t.cluster, t.shapes[0])
	if err != nil {
		return nil, err
	}
	hosts := now.tasks.Hosts()
	if len(hosts) < 2 {
		return nil, fmt.Errorf("layout %s is one node, and needs no network; give more nodes (-c NAME:4, or -l 4x8)", now.layout)
	}
	port, count := step.NodePorts(t.cluster.TypeOf(hosts[0]))
	if count == 0 {
		return nil, fmt.Errorf("%s does not say how fast its NICs are; give --nic", t.cluster.Name)
	}
	waits, _ := now.tasks.Fabric().NetworkWait(now.Result)
	d := &NeedDoc{
		Cluster: t.cluster.Name, Layout: now.layout, Model: t.job.Model.Name, Parallel: now.job.Split.String(), Within: within / 100,
		Bound: now.Step - waits, Misfit: now.memoryShortfall(),
	}
	n := &needing{t: t, now: now, doc: d}
	if err := n.answer(port.Gbps(), count); err != nil {
		return nil, err
	}
	d.conclude()
	return d, nil
}

// needing is the work on one answer.
type needing struct {
	t   *training
	now *pricedStep
	doc *NeedDoc
}

// answer prices the job on the cluster, with other rates, fewer NICs, and faster layers.
func (n *needing) answer(port float64, count int) (err error) {
	if n.doc.Now, err = n.row(n.t.cluster, NeedRow{What: "now", Gbps: port, NICs: count, Now: true}); err != nil {
		return err
	}
	best, _ := step.Faster(n.t.cluster, endless, step.Ports, step.Trunks)
	if n.doc.Endless, err = n.row(best, NeedRow{What: "endless"}); err != nil {
		return err
	}
	if err := n.networks(port, count); err != nil {
		return err
	}
	return n.upgrades()
}

// row prices a variant of the cluster.
func (n *needing) row(cl *cluster.Cluster, r NeedRow) (NeedRow, error) {
	x, err := n.t.price(cl, n.t.shapes[0])
	if err != nil {
		return r, err
	}
	return n.filled(r, x), nil
}

// filled is a row with what was priced.
func (n *needing) filled(r NeedRow, x *pricedStep) NeedRow {
	r.Step, r.Over, r.Gain = x.Step, float64(x.Step/n.doc.Bound-1), float64(n.now.Step/x.Step-1)
	r.Enough = r.Over <= n.doc.Within
	_, r.Limit = x.tasks.Fabric().NetworkWait(x.Result)
	return r
}

// networks are other rates of all ports and cables, and fewer ports.
func (n *needing) networks(port float64, count int) error {
	for _, rate := range hardware.PortRates() {
		v := rate.Gbps()
		cl, _ := step.Faster(n.t.cluster, v/port, step.Ports, step.Trunks)
		r, err := n.row(cl, NeedRow{What: fmt.Sprintf("%d × %g Gb/s", count, v), Gbps: v, NICs: count, Now: v == port})
		if err != nil {
			return err
		}
		n.doc.Rates = append(n.doc.Rates, r)
	}
	for k := 1; k <= count; k *= 2 {
		cl, ok := step.WithPorts(n.t.cluster, k)
		if !ok {
			break
		}
		r, err := n.row(cl, NeedRow{What: fmt.Sprintf("%d × %g Gb/s", k, port), Gbps: port, NICs: k, Now: k == count})
		if err != nil {
			return err
		}
		n.doc.NICs = append(n.doc.NICs, r)
	}
	return nil
}

// upgrades are layers twice as fast, and NICs that reach GPU memory where they do not.
func (n *needing) upgrades() error {
	add := func(cl *cluster.Cluster, ok bool, what string) error {
		if !ok {
			return nil
		}
		r, err := n.row(cl, NeedRow{What: what})
		if err == nil {
			n.doc.Upgrades = append(n.doc.Upgrades, r)
		}
		return err
	}
	for _, t := range step.Tiers() {
		cl, ok := step.Faster(n.t.cluster, 2, t)
		if err := add(cl, ok, t.String()); err != nil {
			return err
		}
	}
	cl, ok := step.WithGPUDirect(n.t.cluster)
	if err := add(cl, ok, "NICs that reach GPU memory (GPUDirect RDMA)"); err != nil {
		return err
	}
	far := *n.t
	far.env = map[string]string{"NCCL_NET_GDR_LEVEL": "SYS"}
	if x, err := far.price(n.t.cluster, n.t.shapes[0]); err == nil && x.Step < 0.995*n.now.Step {
		n.doc.Upgrades = append(n.doc.Upgrades, n.filled(NeedRow{What: "NCCL_NET_GDR_LEVEL=SYS, where the platform allows it"}, x))
	}
	slices.SortStableFunc(n.doc.Upgrades, func(x, y NeedRow) int { return cmp.Compare(y.Gain, x.Gain) })
	return nil
}

// conclude finds the least that is enough and says it.
func (d *NeedDoc) conclude() {
	for i := len(d.Rates) - 1; i >= 0 && d.Rates[i].Enough; i-- {
		d.Slowest = d.Rates[i].Gbps
	}
	for i := len(d.NICs) - 1; i >= 0 && d.NICs[i].Enough; i-- {
		d.Fewest = d.NICs[i].NICs
	}
	nics := fmt.Sprintf("%d NICs", d.Now.NICs)
	if d.Now.NICs == 1 {
		nics = "one NIC"
	}
	switch {
	case d.Slowest == 0:
		d.Text = fmt.Sprintf("no network of up to %g Gb/s per NIC is enough; with an infinitely fast one the step would still be %.0f%% longer", d.Rates[len(d.Rates)-1].Gbps, 100*d.Endless.Over)
		if d.Endless.Limit != "" {
			d.Text += ": " + d.Endless.Limit
		}
	case d.Now.Enough && d.Fewest > 0 && d.Fewest < d.Now.NICs:
		d.Text = fmt.Sprintf("%s of %g Gb/s per node would be enough, or %d of today's %d", nics, d.Slowest, d.Fewest, d.Now.NICs)
	default:
		d.Text = fmt.Sprintf("enough: %s of %g Gb/s per node; today's have %g", nics, d.Slowest, d.Now.Gbps)
	}
	if len(d.Upgrades) == 0 {
		return
	}
	switch u := d.Upgrades[0]; {
	case u.Gain < 0.005 && d.Now.Enough:
		d.Text += "; no layer of the fabric is worth upgrading for this job"
	case u.Gain < 0.005:
		d.Text += "; no one layer of the fabric twice as fast would help"
	default:
		d.Text += fmt.Sprintf("; first: %s, for %.1f%% more speed", u.What, 100*u.Gain)
	}
}
