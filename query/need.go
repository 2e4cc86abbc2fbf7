package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Need asks which network a job needs, the inverse of Step: the slowest ports and the fewest NICs for which the step
// stays within some per cent of what it would take if nothing waited for other nodes, and which layer of the fabric to
// upgrade first.
type Need struct {
	Job
	Hosts  string   `placeholder:"HOSTLIST" help:"Participating hosts of the cluster in rank order, as a hostlist: gpu[03,07] (default: the cluster's hosts in their order)."`
	Within *float64 `default:"5" help:"Tolerated slowdown in percent against a step that never waits for other nodes (default 5)."`
}

// NeedDoc is the answer to Need.
type NeedDoc struct {
	Cluster  string           `json:"cluster"`
	Layout   string           `json:"layout"`
	Job      workload.Summary `json:"job"`
	GPU      string           `json:"gpu"`
	Within   float64          `json:"within"`          // as a share: 0.05
	Bound    unit.Span        `json:"compute_bound_s"` // the step without any waiting for other nodes
	Endless  NeedRow          `json:"endless"`         // with a network that limits nothing
	Now      NeedRow          `json:"now"`
	Rates    []NeedRow        `json:"rates"`    // with ports and cables of other rates, the slowest first
	NICs     []NeedRow        `json:"nics"`     // with fewer ports per node, the fewest first
	Upgrades []NeedRow        `json:"upgrades"` // with one layer twice as fast, twice the NICs, or RDMA, the greatest gain first
	// Free are settings of the job that cost nothing.
	Free []needFree `json:"free,omitempty"`
	// Sockets says where the figure comes from that bounds kernel sockets; "" where NICs are not driven by them.
	Sockets string `json:"sockets,omitempty"`
	// Slowest and Fewest are the answers; 0 where nothing that was tried is enough.
	Slowest unit.Rate `json:"slowest_GBps"` // of a port
	Fewest  int       `json:"fewest_nics"`
	Text    string    `json:"text"`
	// Slower says where NCCL's own choice makes a faster network slower, and which setting avoids it; "" where it nowhere
	// does.
	Slower     string  `json:"slower_by_choice,omitempty"`
	Margin     float64 `json:"margin"` // every step is expected between step/margin and step×margin
	MarginFrom string  `json:"margin_source"`
	Noted
}

// needFree is a setting of the job that makes its step shorter on the network as it is.
type needFree struct {
	Setting string    `json:"setting"` // a flag of busbar step
	Step    unit.Span `json:"step_s"`
	Gain    float64   `json:"gain"`
}

// NeedRow is the step on a variant of the cluster: as NCCL chooses its algorithms, and with the setting that makes it
// shortest.
type NeedRow struct {
	What     string    `json:"what"`
	Rate     unit.Rate `json:"nic_GBps,omitempty"` // of a port
	NICs     int       `json:"nics_per_node,omitempty"`
	Step     unit.Span `json:"step_s"`
	Low      unit.Span `json:"low_s"` // the error bar
	High     unit.Span `json:"high_s"`
	Over     float64   `json:"over_compute"`      // 0.05 is 5% longer
	Setting  string    `json:"setting,omitempty"` // NCCL_ALGO=… where that is faster than NCCL's own choice
	Best     unit.Span `json:"best_step_s"`       // with Setting
	BestOver float64   `json:"best_over_compute"`
	Gain     float64   `json:"gain,omitempty"`  // of Best over that of the cluster as it is
	Enough   bool      `json:"enough"`          // with Setting
	Limit    string    `json:"limit,omitempty"` // of most of what waits
	Now      bool      `json:"now,omitempty"`   // the cluster as it is
}

// Wrong reports that no network that is sold is enough.
func (d *NeedDoc) Wrong() bool { return d.Slowest == 0 }

// endless is how many times as fast a network is whose own rates limit nothing.
const endless = 1e3

// Run prices the step on variants of the cluster.
func (q Need) Run(ctx context.Context, env Env) (doc *NeedDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	within := *q.Within
	if !(within > 0 && within < 1000) {
		return nil, fmt.Errorf("--within %g; expected per cent, more than 0", within)
	}
	if q.Compare != "" {
		return nil, fmt.Errorf("--compare %s: need asks about one layout; give it with -l", q.Compare)
	}
	t, err := q.read(ctx, &env, 0)
	if err != nil {
		return nil, err
	}
	if err := onHosts(q.Hosts, t.shapes); err != nil {
		return nil, err
	}
	defer env.working("pricing variants of the cluster")()
	now, err := t.resolve(ctx, t.shapes[0])
	if err != nil {
		return nil, err
	}
	if err := unused(&q.Job, now); err != nil {
		return nil, err
	}
	now.noteCalibrated(&env)
	hosts := now.tasks.Hosts()
	if len(hosts) < 2 {
		return nil, fmt.Errorf("layout %s is one node, and needs no network; give more nodes (-c NAME:2, or -l 2x%d)",
			now.layout, now.Ranks)
	}
	port, count := step.NodePorts(t.cluster.TypeOf(hosts[0]))
	if count == 0 {
		return nil, fmt.Errorf("%s does not say how fast its NICs are; give --nic", t.cluster.Name)
	}
	if err := now.noteDoubts(&env, q.Devices != ""); err != nil {
		return nil, err
	}
	waits, _ := now.tasks.Fabric().NetworkWait(now.Result)
	d := &NeedDoc{
		Cluster: t.cluster.Name, Layout: now.layout, Job: now.summary(), GPU: now.model.Title,
		Within: within / 100,
		Bound:  now.Step - waits, Margin: now.gpu.Margin(now.job),
		MarginFrom: now.marginSource(),
	}
	n := &needing{now: now, doc: d}
	_, n.sockets = step.WithRoCE(t.cluster)
	if n.twice, n.twiceWhat, err = q.twiceNICs(ctx, env, t.shapes, count); err != nil {
		return nil, err
	}
	if err := n.free(); err != nil {
		return nil, err
	}
	if err := n.answer(port, count); err != nil {
		return nil, err
	}
	if n.sockets {
		d.Sockets = socketSource
	}
	d.conclude()
	return d, nil
}

// needing is the work on one answer.
type needing struct {
	now       *pricedStep
	doc       *NeedDoc
	sockets   bool             // NICs are driven by the kernel
	twice     *cluster.Cluster // with twice the NICs; nil where nobody knows where they would be
	twiceWhat string
}

// countNICs is the number that --nic may begin with, and that --set nics has.
var countNICs = regexp.MustCompile(`^\d+x|\bnics(_per_node)?=\d+`)

// twiceNICs is the cluster with twice the NICs a node and how --nic or --set says it; nil where nobody says how many
// there are now, nor where more of them would be.
func (q *Need) twiceNICs(ctx context.Context, env Env, shapes []shape, count int) (*cluster.Cluster, string, error) {
	more, set := q.Job, strings.Join(q.Set, ",")
	what := fmt.Sprintf("--set nics=%d", 2*count)
	switch {
	case countNICs.MatchString(set):
		more.Set = []string{countNICs.ReplaceAllString(set, fmt.Sprintf("nics=%d", 2*count))}
	case q.NIC == "" || set != "":
		return nil, "", nil
	default:
		more.NIC = fmt.Sprintf("%dx%s", 2*count, countNICs.ReplaceAllString(q.NIC, ""))
		what = "--nic " + more.NIC
	}
	env.Note, env.notes = nil, &notes{} // what was assumed was said already
	cl, err := more.placement().load(ctx, &env, shapes)
	if err != nil { // nodes have no more of them, for what was given was loaded before
		return nil, "", ctx.Err()
	}
	if _, n := step.NodePorts(cl.TypeOf(0)); n != 2*count {
		return nil, "", nil
	}
	return cl, what, nil
}

// free prices settings that cost nothing: gradients that cross the network in 16 bits where the framework has a hook
// for it.
func (n *needing) free() error {
	now := n.now
	j := now.job
	if j.Split.DP < 2 || j.GradWidth() <= 2 || j.Compresses() ||
		!slices.Contains(j.Framework.Compress, "bf16") {
		return nil
	}
	less := *j
	less.Compress = "bf16"
	x, err := now.price(&less)
	if err != nil {
		return err
	}
	if gain := float64(now.Step/x.Step - 1); gain >= leastChoice {
		n.doc.Free = append(n.doc.Free, needFree{Setting: "--compress bf16", Step: x.Step, Gain: gain})
	}
	return nil
}

// answer prices the job on the cluster, with other rates, fewer NICs, and faster layers.
func (n *needing) answer(port unit.Rate, count int) (err error) {
	if n.doc.Now, err = n.row(n.now.cluster, NeedRow{What: "now", Rate: port, NICs: count, Now: true}); err != nil {
		return err
	}
	best, _ := step.Faster(n.now.cluster, endless, step.Ports, step.Trunks)
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
	x, err := n.now.on(cl)
	if err != nil {
		return r, err
	}
	return n.filled(r, x), nil
}

// leastChoice is the share of a step that NCCL_ALGO must gain to be spoken of.
const leastChoice = 0.01

// filled is a row with what was priced, and with what NCCL_ALGO would make of it.
func (n *needing) filled(r NeedRow, x *pricedStep) NeedRow {
	best, setting := x.tasks.BestAlgorithm(x.gpu, x.Result, leastChoice)
	if best == nil {
		best = x.Result
	}
	over := func(t unit.Span) float64 { return float64(t/n.doc.Bound - 1) }
	margin := unit.Span(n.doc.Margin)
	r.Step, r.Low, r.High, r.Over = x.Step, x.Step/margin, x.Step*margin, over(x.Step)
	r.Best, r.BestOver, r.Setting = best.Step, over(best.Step), setting
	if now := n.doc.Now.Best; now > 0 {
		r.Gain = float64(now/r.Best - 1)
	}
	r.Enough = r.BestOver <= n.doc.Within
	_, r.Limit = x.tasks.Fabric().NetworkWait(best)
	return r
}

// portsOf says so many ports of a rate.
func portsOf(n int, rate unit.Rate) string { return fmt.Sprintf("%d × %g Gb/s", n, rate.Gbps()) }

// networks are other rates of all ports and cables, and fewer ports.
func (n *needing) networks(port unit.Rate, count int) error {
	for _, rate := range hardware.PortRates() {
		cl, _ := step.Faster(n.now.cluster, float64(rate/port), step.Ports, step.Trunks)
		r, err := n.row(cl, NeedRow{What: portsOf(count, rate), Rate: rate, NICs: count, Now: rate == port})
		if err != nil {
			return err
		}
		n.doc.Rates = append(n.doc.Rates, r)
	}
	for k := 1; k <= count; k *= 2 {
		cl, ok := step.WithPorts(n.now.cluster, k)
		if !ok {
			break
		}
		r, err := n.row(cl, NeedRow{What: portsOf(k, port), Rate: port, NICs: k, Now: k == count})
		if err != nil {
			return err
		}
		n.doc.NICs = append(n.doc.NICs, r)
	}
	return nil
}

// purchases are NICs with RDMA where the kernel drives them, also faster ones, and twice the NICs.
func (n *needing) purchases(add func(cl *cluster.Cluster, ok bool, what string) error) error {
	if err := add(n.twice, n.twice != nil, fmt.Sprintf("twice the NICs (%s)", n.twiceWhat)); err != nil {
		return err
	}
	rdma, ok := step.WithRoCE(n.now.cluster)
	if err := add(rdma, ok, "RDMA (RoCE) instead of kernel sockets"); err != nil || !ok {
		return err
	}
	for _, times := range []float64{2, 4} {
		cl, ok := step.Faster(rdma, times, step.Ports, step.Trunks)
		if err := add(cl, ok, fmt.Sprintf("RDMA (RoCE), NICs and cables of %g Gb/s",
			times*n.doc.Now.Rate.Gbps())); err != nil {
			return err
		}
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
		cl, ok := step.Faster(n.now.cluster, 2, t)
		if err := add(cl, ok, t.String()); err != nil {
			return err
		}
	}
	cl, ok := hardware.WithGPUDirect(n.now.cluster, cluster.No, cluster.Yes)
	if err := add(cl, ok, "NICs that reach GPU memory (GPUDirect RDMA)"); err != nil {
		return err
	}
	if err := n.purchases(add); err != nil {
		return err
	}
	far := n.now.jobSite
	far.setting = map[string]string{"NCCL_NET_GDR_LEVEL": "SYS"}
	maps.Copy(far.setting, n.now.setting)
	if x, err := far.price(n.now.job); err == nil {
		if r := n.filled(NeedRow{What: "NCCL_NET_GDR_LEVEL=SYS, where the platform allows it"}, x); r.Gain >= 0.005 {
			n.doc.Upgrades = append(n.doc.Upgrades, r)
		}
	}
	slices.SortStableFunc(n.doc.Upgrades, func(x, y NeedRow) int { return cmp.Compare(y.Gain, x.Gain) })
	return nil
}

// conclude finds the least that is enough and says it.
func (d *NeedDoc) conclude() {
	for i := len(d.Rates) - 1; i >= 0 && d.Rates[i].Enough; i-- {
		d.Slowest = d.Rates[i].Rate
	}
	for i := len(d.NICs) - 1; i >= 0 && d.NICs[i].Enough; i-- {
		d.Fewest = d.NICs[i].NICs
	}
	d.Slower = d.slowerByChoice()
	d.Text = strings.Join([]string{d.costless(), d.verdict(), d.choice(), d.upgrade()}, "")
}

// socketSource says what is known of the rate of kernel sockets.
const socketSource = "What kernel sockets move through a port is fitted to one published cluster; " +
	"more sockets and threads, NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4, may move more and cost nothing, but are " +
	"not priced: measure with them before buying."

// costless says what settings of the job would do, before anything is bought.
func (d *NeedDoc) costless() string {
	text := ""
	for _, f := range d.Free {
		text += fmt.Sprintf("%s costs nothing: %s instead of %s. ", f.Setting, f.Step.Short(), d.Now.Step.Short())
	}
	if d.Sockets != "" {
		text += d.Sockets + " "
	}
	return text
}

// verdict says which network is enough.
func (d *NeedDoc) verdict() string {
	nics := fmt.Sprintf("%d NICs", d.Now.NICs)
	if d.Now.NICs == 1 {
		nics = "one NIC"
	}
	with := ""
	for _, r := range d.Rates {
		if r.Rate == d.Slowest && r.Over > d.Within {
			with = " with " + r.Setting
		}
	}
	switch {
	case d.Slowest == 0:
		text := fmt.Sprintf("No network of up to %g Gb/s per NIC is enough: with an infinitely fast one the step is still "+
			"%.1f%% longer.", d.Rates[len(d.Rates)-1].Rate.Gbps(), 100*d.Endless.BestOver)
		if d.Endless.Limit != "" {
			text += " Its limit is then: " + d.Endless.Limit + "."
		}
		return text
	case d.Now.Enough && d.Fewest > 0 && d.Fewest < d.Now.NICs:
		return fmt.Sprintf("Enough per node: %s of %g Gb/s%s, or %d of today's %d.", nics, d.Slowest.Gbps(), with, d.Fewest,
			d.Now.NICs)
	case d.Slowest == d.Now.Rate:
		return fmt.Sprintf("Enough per node: today's %s of %g Gb/s%s; slower ones are not.", nics, d.Slowest.Gbps(), with)
	}
	return fmt.Sprintf("Enough per node: %s of %g Gb/s%s; today's have %g Gb/s.", nics, d.Slowest.Gbps(),
		with, d.Now.Rate.Gbps())
}

// choice says what NCCL_ALGO would do on the cluster as it is.
func (d *NeedDoc) choice() string {
	if d.Now.Setting == "" {
		return ""
	}
	return fmt.Sprintf(" Today's step would be %s with %s, which costs nothing, instead of %s.", d.Now.Best.Short(),
		d.Now.Setting, d.Now.Step.Short())
}

// upgrade says which layer to buy first.
func (d *NeedDoc) upgrade() string {
	if len(d.Upgrades) == 0 {
		return ""
	}
	switch u := d.Upgrades[0]; {
	case d.Now.Enough && u.Gain < max(d.Within, 0.005):
		return " No layer of the fabric is worth upgrading for this job."
	case u.Gain < 0.005:
		return " No one layer of the fabric twice as fast would help."
	default:
		return fmt.Sprintf(" Of the upgrades the first in the table helps most: %s instead of %s.", u.Best.Short(),
			d.Now.Best.Short())
	}
}

// slowerByChoice says where a faster network makes the step slower because NCCL then chooses otherwise.
func (d *NeedDoc) slowerByChoice() string {
	var list []string
	slight := false
	for _, rows := range [][]NeedRow{d.Rates, d.NICs} {
		for i := 1; i < len(rows); i++ {
			was, is := &rows[i-1], &rows[i]
			if float64(is.Step) <= float64(was.Step)*(1+leastChoice) {
				slight = slight || is.Step > was.Step && is.Step.Short() != was.Step.Short()
				continue
			}
			text := fmt.Sprintf("%s instead of %s makes the step slower, %s instead of %s: NCCL's own cost model then chooses "+
				"another algorithm or other channels.", is.What, was.What, is.Step.Short(), was.Step.Short())
			if d.Sockets != "" {
				text = fmt.Sprintf("%s instead of %s lets NCCL choose worse, %s instead of %s, which is no fault of the NIC: "+
					"NCCL counts on the port's rate, and here one set of sockets is taken to move no more.", is.What, was.What,
					is.Step.Short(), was.Step.Short())
			}
			if is.Setting != "" {
				text += fmt.Sprintf(" With %s it would be %s.", is.Setting, is.Best.Short())
			} else {
				text += " NCCL_ALGO does not avoid it."
			}
			list = append(list, text)
		}
	}
	if len(list) == 0 && slight {
		return "Where a faster network is slower by less than 1%, NCCL chooses other channels, and the difference is too " +
			"small to tell."
	}
	return strings.Join(list, " ")
}
