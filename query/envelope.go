package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Envelope asks for the arithmetic of a training step that one does on the back of an envelope: memory, operations, the
// exchange of gradients and whether it hides behind computing, each line with its formula and numbers.
type Envelope struct {
	Job
	GPUs int      `name:"gpus" least:"1" placeholder:"N" help:"Number of GPUs, on as few nodes as possible (default: all)."`
	MFU  *float64 `name:"mfu" default:"0.5" help:"Share of peak FLOPS that compute reaches (default 0.5)."`
}

// EnvelopeDoc is the answer to Envelope.
type EnvelopeDoc struct {
	Cases []workload.Case `json:"cases"`
	Noted
}

// Run works out the case that was asked about.
func (q Envelope) Run(ctx context.Context, env Env) (doc *EnvelopeDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	own, err := q.own(ctx, &env)
	if err != nil {
		return nil, err
	}
	return &EnvelopeDoc{Cases: []workload.Case{own}}, nil
}

// notInFormulas are fields of a job that simple formulas do not have.
const notInFormulas = "parallel micro-batch framework kernels unfused padded sync schedule order bucket context " +
	"offload compress nccl env lora packed method mtp graphs channels-first"

// check refuses fields that contradict each other.
func (q *Envelope) check() error {
	if err := unread(q, notInFormulas, "the formulas do not have it"); err != nil {
		return err
	}
	switch mfu := *q.MFU; {
	case q.Cluster == "" || q.Model == "":
		return errors.New("expected both -c CLUSTER and -m MODEL")
	case !(mfu > 0 && mfu <= 1):
		return fmt.Errorf("--mfu %g; expected more than 0, at most 1", mfu)
	case q.GPUs > 0 && (q.Layout != "" || q.Compare != ""):
		return fmt.Errorf("--gpus %d: expected a positive number, and neither -l nor --compare beside it", q.GPUs)
	case q.Compare != "":
		return fmt.Errorf("--compare %s: an envelope is of one layout; give it with -l", q.Compare)
	}
	return nil
}

// own is the case that was asked about.
func (q *Envelope) own(ctx context.Context, env *Env) (none workload.Case, err error) {
	if err := q.check(); err != nil {
		return none, err
	}
	t, err := q.read(ctx, env, 0)
	if err != nil {
		return none, err
	}
	cl, s := t.cluster, t.shapes[0]
	if q.GPUs > 0 {
		_, per := perHost(cl)
		s = shape{nodes: (q.GPUs + max(per, 1) - 1) / max(per, 1), gpus: min(q.GPUs, per)}
		if s.nodes > len(cl.Hosts) {
			if t, err = q.read(ctx, env, s.nodes); err != nil {
				return none, err
			}
			cl = t.cluster
		}
		s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
	}
	layout, name, err := s.ranks(cl)
	if err != nil {
		return none, err
	}
	gpu, err := step.GPUOf(cl, layout)
	if err != nil {
		return none, err
	}
	g, err := gpuOn(cl, gpu)
	if err != nil {
		return none, err
	}
	j, nodes := t.job, hostsOf(layout)
	j.Complete(len(layout))
	m := j.Model
	x := workload.Envelope{
		Title: fmt.Sprintf("%s on %s, %s of %s", m.Name, cl.Name, name, gpu.Title), Params: float64(m.Params()),
		Active: float64(m.Active()),
		Seq:    j.Seq, Batch: j.GlobalBatch, GPUs: len(layout), Nodes: nodes, Recompute: q.Recompute == workload.Full,
		GPU: gpu.Title, Peak: g.Peak(cmp.Or(j.Precision, workload.BF16)), MFU: *q.MFU,
	}
	kind := cluster.PCIe
	if x.Intra, kind = insideRate(cl, layout); kind == cluster.PCIe {
		x.IntraLink = "PCIe link"
	}
	if m.Replicated() {
		x.Sample = m.Forward(x.Seq)
	}
	if nodes > 1 {
		if x.Inter = nicRate(cl, layout); x.Inter <= 0 {
			return none, fmt.Errorf("%s does not say how fast its NICs are; give --nic", cl.Name)
		}
	}
	return workload.Case{Title: x.Title, Lines: append(x.Lines(), x.Servers()...)}, nil
}

// insideRate is what the slowest GPU of the first node sends to the others there, and by what: links of GPUs where they
// join all that take part, as switches and full meshes do and a bridge of two cards does not, else PCIe.
func insideRate(cl *cluster.Cluster, l nccl.Layout) (unit.Rate, cluster.LinkKind) {
	t := cl.TypeOf(l[0].Host)
	group := make([]int, len(t.Devices)) // of devices that links of GPUs join
	for i := range group {
		group[i] = i
	}
	var root func(i int) int
	root = func(i int) int {
		if group[i] != i {
			group[i] = root(group[i])
		}
		return group[i]
	}
	own, bus := make([]unit.Rate, len(t.Devices)), make([]unit.Rate, len(t.Devices))
	kind := cluster.PCIe
	for i := range t.Links {
		x := &t.Links[i]
		switch x.Kind {
		case cluster.NVLink, cluster.XGMI, cluster.Gaudi:
			kind = x.Kind
			group[root(x.A)] = root(x.B)
			own[x.A] += x.Rate.Value
			if !x.OneWay {
				own[x.B] += x.Rate.Value
			}
		case cluster.PCIe:
			bus[x.A], bus[x.B] = max(bus[x.A], x.Rate.Value), max(bus[x.B], x.Rate.Value)
		}
	}
	rate := own
	for _, r := range l {
		if r.Host == l[0].Host && (own[r.GPU] == 0 || root(r.GPU) != root(l[0].GPU)) {
			rate, kind = bus, cluster.PCIe
		}
	}
	slowest := rate[l[0].GPU]
	for _, r := range l {
		if r.Host == l[0].Host {
			slowest = min(slowest, rate[r.GPU])
		}
	}
	return slowest, kind
}

// nicRate is what the NICs of the first node carry together.
func nicRate(cl *cluster.Cluster, l nccl.Layout) unit.Rate {
	t := cl.TypeOf(l[0].Host)
	all := unit.Rate(0)
	for _, i := range t.Of(cluster.NIC) {
		if n := t.Devices[i].NIC; n != nil {
			all += n.Rate().Value
		}
	}
	return all
}
