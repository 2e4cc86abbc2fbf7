package step

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Shares of what data sheets say.
const (
	// copyShare is of a link between a GPU and its host, by copies to and from locked memory. On an
	// H200 over PCIe 5 x16, 63 GB/s, 55.4 were measured one way and 47.6 each way at once; the README
	// of NVIDIA's nvbandwidth shows 26.0 of 31.5 over PCIe 4 x16.
	copyShare = 0.85
	// updateShare is of the host's memory, by an update that all its cores work on: a round
	// figure, not fitted. Measured was what limits it: PyTorch's fused AdamW on 16 cores of a Xeon
	// read and wrote 111 GB/s, where adding two vectors took 123.
	updateShare = 0.5
)

// hostSide is what a rank has of its host, all ranks of the host working at once.
type hostSide struct {
	copies unit.Rate // each way between the GPU and the host's memory
	update unit.Rate // that its update reads and writes
	limit  string
	shared float64 // ranks of the host
}

// Hosted reports whether it is known how GPUs reach their host's memory, so that offloading can be priced.
func (f *Fabric) Hosted() bool {
	_, err := f.hostSide()
	return err == nil
}

// hostSide looks at the first host: the slowest of its GPUs that take part.
func (f *Fabric) hostSide() (*hostSide, error) {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	if f.cache.host != nil {
		return f.cache.host, nil
	}
	host := f.layout[0].Host
	t := f.c.TypeOf(host)
	routes := cluster.NewRoutes(f.c)
	typ := f.c.Hosts[host].Type
	var ways [][]cluster.Leg
	users := make([]float64, len(t.Links))
	for _, r := range f.layout {
		if r.Host != host {
			continue
		}
		cpu := t.Above(r.GPU, cluster.NUMA)
		if cpu < 0 {
			cpu = t.Above(r.GPU, cluster.Socket)
		}
		if cpu < 0 {
			return nil, fmt.Errorf("%s does not say where on the host its GPUs hang, so that offloading cannot be priced; "+
				"the machine's nvidia-smi topo -m does, as -c FILE", f.c.Name)
		}
		legs, _ := routes.Inside(typ, r.GPU, cpu)
		for _, l := range legs {
			if l.Link >= 0 {
				users[l.Link]++
			}
		}
		ways = append(ways, legs)
	}
	h := &hostSide{shared: float64(len(ways))}
	for _, legs := range ways {
		for _, l := range legs {
			if l.Link < 0 || t.Links[l.Link].Rate.Value <= 0 {
				continue
			}
			x := &t.Links[l.Link]
			each := x.Rate.Value / unit.Rate(users[l.Link])
			if h.copies == 0 || each < h.copies {
				h.copies = each
				h.limit = fmt.Sprintf("%v to the host carries %v one direction, for %g GPUs", x.Kind, x.Rate.Value, users[l.Link])
			}
		}
	}
	if h.copies == 0 {
		return nil, fmt.Errorf("%s does not say how fast the links between its GPUs and their host are", f.c.Name)
	}
	h.copies *= copyShare
	h.update = hardware.HostMemory(t).Value * updateShare / unit.Rate(h.shared)
	f.cache.host = h
	return h, nil
}

// toHost adds the copies of offloading: gradients go down beside the backward pass, after every
// micro-batch where the GPU has no room to gather them (each later one brings the sum so far up
// again, in the other direction), and new parameters come up while the next part is updated.
func (p *pricing) toHost(x *stage, micros float64) error {
	j := p.j
	if !j.Offloads() && j.HostLayers == 0 {
		return nil
	}
	h, err := p.f.hostSide()
	if err != nil {
		return err
	}
	if j.HostLayers > 0 { // down beside the forward pass, up beside the backward one
		one := p.memory.Host.At(h.copies)
		open := max(0, one-x.forward()) + max(0, one-x.backward())
		p.count(ToHost, "activations to the host and back", p.memory.Host, 2*micros, one, open/2, h.limit)
		return nil
	}
	bytes := p.changed(x)
	one := bytes.At(h.copies)
	times := 1.0
	if j.Streams() {
		times = micros
	}
	last := min(one, p.bucketSize().At(h.copies)) // nothing hides the last one
	open := unit.Span(times)*max(0, one-x.backward()) + last
	if j.Offload == workload.OffloadParams {
		// forward, backward, and gradients; but for the last ones, what waits is in the play of gathering and dividing
		moved := (bytes + 2*unit.Volume(p.share(sum(x.params))*j.GatherWidth())) / 3
		calls := 3 * micros
		p.count(ToHost, "parameters from the host, gradients to it", moved, calls, moved.At(h.copies),
			last/unit.Span(calls), h.limit)
		return nil
	}
	p.count(ToHost, "gradients to the host", bytes, times, one, open/unit.Span(times), h.limit)
	if j.Offload == workload.OffloadOptimizer {
		update, err := p.optimizer(p.trained(x))
		if err != nil {
			return err
		}
		p.count(ToHost, "gradients to the host", bytes, 1, one, max(0, one-update), h.limit)
	}
	return nil
}

// changed is a rank's share of gradients, and of parameters that an update changes.
func (p *pricing) changed(x *stage) unit.Volume {
	return unit.Volume(p.share(p.trained(x)) * p.j.ParamWidth())
}

// fetched is a block's gathering and dividing where parameters are in the host's memory: all come from there, and the
// gradients of those that are trained go there.
func (p *pricing) fetched(params, trained float64, gather, scatter unit.Span) (unit.Span, unit.Span, error) {
	j := p.j
	if j.Offload != workload.OffloadParams {
		return gather, scatter, nil
	}
	h, err := p.f.hostSide()
	if err != nil {
		return 0, 0, err
	}
	down := unit.Volume(p.share(params) * j.GatherWidth()).At(h.copies)
	up := unit.Volume(p.share(trained) * j.ParamWidth()).At(h.copies)
	return max(gather, down), max(scatter, up), nil
}

// copyDown draws a rank's gradients on their way to the host, as late as they may go and end with the
// backward pass of a micro-batch: they go bucket by bucket as they come. What cannot be priced was
// refused before anything is drawn.
func (t *timeline) copyDown(begin unit.Span, micro int) {
	j := t.x.j
	if !j.Offloads() || !j.Streams() && int64(micro) < j.Micros()-1 {
		return
	}
	from := max(begin, begin+t.x.stages[0].backward()-t.x.copying())
	t.copied = t.copy(fmt.Sprintf("gradients to the host, micro-batch %d", micro), max(from, t.copied))
}

// copyUp draws new parameters on their way back, beside the update.
func (t *timeline) copyUp(from unit.Span) {
	if t.x.j.Offload == workload.OffloadOptimizer {
		t.copy("parameters from the host", from)
	}
}

// copy draws what a rank has a share of on the link to the host.
func (t *timeline) copy(name string, from unit.Span) unit.Span {
	bytes := t.x.changed(&t.x.stages[0])
	to := from + t.x.copying()
	t.bars = append(t.bars, Bar{Host: true, Name: name, Kind: 'h', From: from, To: to, Bytes: bytes})
	return to
}

// copying is how long a rank's share takes to or from the host.
func (p *pricing) copying() unit.Span {
	h, err := p.f.hostSide()
	if err != nil {
		return 0
	}
	return p.changed(&p.stages[0]).At(h.copies)
}

// HostMemoryText says how much of a node's memory its ranks take, and how fast it is.
func (f *Fabric) HostMemoryText(each unit.Volume) string {
	host := f.layout[0].Host
	ranks := unit.Volume(0)
	for _, r := range f.layout {
		if r.Host == host {
			ranks++
		}
	}
	t := f.c.TypeOf(host)
	has := hardware.HostMemorySize(t).Value
	of := ""
	switch need := each * ranks; {
	case has > 0 && need > unit.Volume(has):
		of = fmt.Sprintf(", which has %.1f GB: too little", unit.Volume(has).GB())
	case has > 0:
		of = fmt.Sprintf(" of its %.1f GB", unit.Volume(has).GB())
	}
	rate := hardware.HostMemory(t)
	return fmt.Sprintf("host memory: %.1f GB per node%s; %v (%s)", (each * ranks).GB(), of, rate.Value, rate.Source)
}
