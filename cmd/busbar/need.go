package main

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
)

type needCmd struct {
	common
	jobFlags
	Within float64 `default:"5" help:"Per cent that the step may be longer than without any waiting for other nodes."`
}

// Help ends with examples.
func (needCmd) Help() string {
	return "The inverse of step: the slowest network between nodes, and the fewest NICs, for which the job stays within 5% of what it would take if nothing waited for other nodes; and which layer of the fabric to upgrade first, with the gain of each. " +
		"The step is priced on variants of the cluster. Exits with 1 when no network that is sold is enough.\n\n" +
		"Examples:\n" +
		"  busbar need -c dgx-h100:4 -m llama2-7b --parallel zero=3\n" +
		"  busbar need -c dgx-a100:16 -m gpt3-13b --parallel tp=4 --micro-batch 2 --within 10\n" +
		"  busbar need -c baskerville -m gpt2-large -l 4x4 --micro-batch 8 --json"
}

// endless is how many times as fast a network is whose own rates limit nothing.
const endless = 1e3

// needRow is a variant of the cluster.
type needRow struct {
	What   string    `json:"what"`
	Gbps   float64   `json:"nic_Gbps,omitempty"`
	NICs   int       `json:"nics_per_node,omitempty"`
	Step   unit.Span `json:"step_s"`
	Over   float64   `json:"over_compute"` // 0.05 is 5 % longer
	Gain   float64   `json:"gain,omitempty"`
	Enough bool      `json:"enough"`
	Limit  string    `json:"limit,omitempty"` // of most of what waits
	Now    bool      `json:"now,omitempty"`
}

// needDoc is the answer.
type needDoc struct {
	Cluster  string    `json:"cluster"`
	Layout   string    `json:"layout"`
	Model    string    `json:"model"`
	Parallel string    `json:"parallel"`
	Within   float64   `json:"within"`
	Bound    unit.Span `json:"compute_bound_s"` // without any waiting for other nodes
	Endless  needRow   `json:"endless"`
	Now      needRow   `json:"now"`
	Rates    []needRow `json:"rates"`
	NICs     []needRow `json:"nics"`
	Upgrades []needRow `json:"upgrades"`
	// Slowest and Fewest are the answers; 0 where none of the tried is enough.
	Slowest float64 `json:"slowest_Gbps"`
	Fewest  int     `json:"fewest_nics"`
	Text    string  `json:"text"`
	// Misfit says that the job does not fit the GPUs' memory, and what would; "" where it does.
	Misfit string `json:"does_not_fit,omitempty"`
}

// Run prices the variants.
func (c *needCmd) Run(e *env) error {
	if !(c.Within > 0 && c.Within < 1000) {
		return fmt.Errorf("--within %g; expected per cent, more than 0", c.Within)
	}
	if c.Compare != "" {
		return fmt.Errorf("--compare %s: need asks about one layout; give it with -l", c.Compare)
	}
	a, err := c.ask(e, c.common)
	if err != nil {
		return err
	}
	done := e.later(c.common, "pricing variants of the cluster")
	defer done()
	d, err := c.answer(a)
	if err != nil {
		return err
	}
	done()
	if c.JSON {
		err = writeIndented(e.stdout, d)
	} else {
		err = printNeed(e.stdout, d)
	}
	if err == nil && d.Slowest == 0 {
		return errWrong
	}
	return err
}

// needing is the work on one answer.
type needing struct {
	c   *needCmd
	a   *asked
	now *pricedStep
	doc *needDoc
}

// answer prices the job on the cluster, with other rates, fewer NICs, and faster layers.
func (c *needCmd) answer(a *asked) (*needDoc, error) {
	now, err := c.price(a.cluster, a.shapes[0], a)
	if err != nil {
		return nil, err
	}
	layout, name, err := laid(a.cluster, a.shapes[0])
	if err != nil {
		return nil, err
	}
	if hostsOf(layout) < 2 {
		return nil, fmt.Errorf("layout %s is one node, and needs no network; give more nodes (-c NAME:4, or -l 4x8)", name)
	}
	port, count := portOf(a.cluster, layout[0].Host)
	if count == 0 {
		return nil, fmt.Errorf("%s does not say how fast its NICs are; give --nic", a.cluster.Name)
	}
	waits, _ := now.fabric.Waits(now.Result)
	d := &needDoc{Cluster: a.cluster.Name, Layout: name, Model: a.model.Name, Parallel: now.job.Split.String(), Within: c.Within / 100, Bound: now.Step - waits}
	d.Misfit = now.misfit()
	n := &needing{c: c, a: a, now: now, doc: d}
	if d.Now, err = n.row(a.cluster, needRow{What: "now", Gbps: port, NICs: count, Now: true}); err != nil {
		return nil, err
	}
	best, _ := step.Faster(a.cluster, endless, step.Ports, step.Trunks)
	if d.Endless, err = n.row(best, needRow{What: "endless"}); err != nil {
		return nil, err
	}
	if err := n.networks(port, count); err != nil {
		return nil, err
	}
	if err := n.upgrades(); err != nil {
		return nil, err
	}
	d.conclude()
	return d, nil
}

// misfit says that a job does not fit the GPUs' memory, and what would; "" where it does.
func (x *pricedStep) misfit() string {
	if l := x.Limit(x.job, x.gpu.Memory); l.Kind == "memory" {
		return l.Text
	}
	return ""
}

// row prices a variant of the cluster.
func (n *needing) row(cl *cluster.Cluster, r needRow) (needRow, error) {
	x, err := n.c.price(cl, n.a.shapes[0], n.a)
	if err != nil {
		return r, err
	}
	return n.filled(r, x), nil
}

// filled is a row with what was priced.
func (n *needing) filled(r needRow, x *pricedStep) needRow {
	r.Step, r.Over, r.Gain = x.Step, float64(x.Step/n.doc.Bound-1), float64(n.now.Step/x.Step-1)
	r.Enough = r.Over <= n.doc.Within
	_, r.Limit = x.fabric.Waits(x.Result)
	return r
}

// networks are other rates of all ports and cables, and fewer ports.
func (n *needing) networks(port float64, count int) error {
	for _, sold := range hardware.PortRates() {
		v := sold.Gbps()
		cl, _ := step.Faster(n.a.cluster, v/port, step.Ports, step.Trunks)
		r, err := n.row(cl, needRow{What: fmt.Sprintf("%d × %g Gb/s", count, v), Gbps: v, NICs: count, Now: v == port})
		if err != nil {
			return err
		}
		n.doc.Rates = append(n.doc.Rates, r)
	}
	for k := 1; k <= count; k *= 2 {
		cl, ok := step.Fewer(n.a.cluster, k)
		if !ok {
			break
		}
		r, err := n.row(cl, needRow{What: fmt.Sprintf("%d × %g Gb/s", k, port), Gbps: port, NICs: k, Now: k == count})
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
		r, err := n.row(cl, needRow{What: what})
		if err == nil {
			n.doc.Upgrades = append(n.doc.Upgrades, r)
		}
		return err
	}
	for _, t := range step.Tiers() {
		cl, ok := step.Faster(n.a.cluster, 2, t)
		if err := add(cl, ok, t.String()); err != nil {
			return err
		}
	}
	cl, ok := step.Reaching(n.a.cluster)
	if err := add(cl, ok, "NICs that reach GPU memory (GPUDirect RDMA)"); err != nil {
		return err
	}
	far := *n.a
	far.env = map[string]string{"NCCL_NET_GDR_LEVEL": "SYS"}
	if x, err := n.c.price(n.a.cluster, n.a.shapes[0], &far); err == nil && x.Step < 0.995*n.now.Step {
		n.doc.Upgrades = append(n.doc.Upgrades, n.filled(needRow{What: "NCCL_NET_GDR_LEVEL=SYS, where the platform allows it"}, x))
	}
	slices.SortStableFunc(n.doc.Upgrades, func(x, y needRow) int { return cmp.Compare(y.Gain, x.Gain) })
	return nil
}

// conclude finds the least that is enough and says it.
func (d *needDoc) conclude() {
	for i := len(d.Rates) - 1; i >= 0 && d.Rates[i].Enough; i-- {
		d.Slowest = d.Rates[i].Gbps
	}
	for i := len(d.NICs) - 1; i >= 0 && d.NICs[i].Enough; i-- {
		d.Fewest = d.NICs[i].NICs
	}
	switch {
	case d.Slowest == 0:
		d.Text = fmt.Sprintf("no network of up to %g Gb/s a NIC is enough; with an endless one the step would still be %.0f %% longer", slices.Max(hardware.PortRates()).Gbps(), 100*d.Endless.Over)
		if d.Endless.Limit != "" {
			d.Text += ": " + d.Endless.Limit
		}
	case d.Now.Enough && d.Fewest > 0 && d.Fewest < d.Now.NICs:
		d.Text = fmt.Sprintf("%s of %g Gb/s a node would be enough, or %d of today's %d", nics(d.Now.NICs), d.Slowest, d.Fewest, d.Now.NICs)
	default:
		d.Text = fmt.Sprintf("enough: %s of %g Gb/s a node; today's have %g", nics(d.Now.NICs), d.Slowest, d.Now.Gbps)
	}
	if len(d.Upgrades) > 0 {
		u := d.Upgrades[0]
		switch {
		case u.Gain < 0.005 && d.Now.Enough:
			d.Text += "; no layer of the fabric is worth upgrading for this job"
		case u.Gain < 0.005:
			d.Text += "; no one layer of the fabric twice as fast would help"
		default:
			d.Text += fmt.Sprintf("; first: %s, for %.1f %% more speed", u.What, 100*u.Gain)
		}
	}
}

func nics(n int) string {
	if n == 1 {
		return "one NIC"
	}
	return fmt.Sprintf("%d NICs", n)
}

// portOf is the rate of a node's ports in Gb/s, the slowest of them, and how many are live.
func portOf(cl *cluster.Cluster, host int) (gbps float64, count int) {
	t := cl.TypeOf(host)
	for _, i := range t.Of(cluster.NIC) {
		nic := t.Devices[i].NIC
		if nic == nil {
			continue
		}
		for k := range nic.Ports {
			p := &nic.Ports[k]
			if p.State == cluster.Down || p.Rate.Value <= 0 {
				continue
			}
			if r := p.Rate.Value.Gbps(); count == 0 || r < gbps {
				gbps = r
			}
			count++
		}
	}
	return gbps, count
}
