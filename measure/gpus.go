package measure

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// GPUNode is everything inside a node: memory, copies, products, pairs of GPUs and collectives over all.
type GPUNode struct {
	Host    string        `json:"host"`
	GPUs    []GPUDevice   `json:"gpus"`
	Peers   []GPUPeer     `json:"peers"` // copies between GPUs
	Results result.Sweeps `json:"results"`
	Refused []gpu.Refusal `json:"refused"`
	Notes   []string      `json:"notes"`
	Seconds float64       `json:"seconds"`
	Bad     int64         `json:"wrong"` // elements
}

// GPUDevice is one GPU.
type GPUDevice struct {
	device.Device
	Rates    []device.Rate `json:"rates"`
	Products []GPUProduct  `json:"products"`
}

// GPUProduct is one product.
type GPUProduct struct {
	M     int    `json:"m"`
	N     int    `json:"n"`
	K     int    `json:"k"`
	Dtype string `json:"dtype"`
	device.Result
}

// GPUPeer is the rate of copies from one GPU to another.
type GPUPeer struct {
	From int     `json:"from"`
	To   int     `json:"to"`
	GBps float64 `json:"GBps"`
	Both float64 `json:"both_GBps"` // both ways at once, together
}

// Wrong reports elements that are not what they must be.
func (d *GPUNode) Wrong() bool { return d.Bad > 0 }

// nodeShapes are layers of transformers of 1 to 70 billion parameters, and the square that data sheets mean.
var nodeShapes = []string{
	"8192x8192x8192:bfloat16", "4096x4096x4096:bfloat16", "2048x5120x5120:bfloat16", "4096x11008x4096:bfloat16",
	"8192x3072x1024:bfloat16", "16384x4096x14336:bfloat16", "8192x8192x8192:f8e4m3", "4096x4096x4096:tf32",
}

// Products are requests of shapes, MxNxK:TYPE, like one; without any those of a node.
func Products(shapes []string, like device.Request) (list []device.Request, err error) {
	if len(shapes) == 0 {
		shapes = nodeShapes
	}
	for _, w := range shapes {
		r := like
		r.Do = device.Product
		if n, err := fmt.Sscanf(w, "%dx%dx%d:%s", &r.M, &r.N, &r.K, &r.Dtype); n != 4 || err != nil ||
			min(r.M, r.N, r.K) < 1 {
			return nil, fmt.Errorf("--shapes %s: expected MxNxK:TYPE such as 8192x8192x8192:bfloat16", w)
		}
		list = append(list, r)
	}
	return list, nil
}

// GPUs measures those of a node by copies of so many bytes and products. What one GPU refuses does not keep the others
// from being measured.
func GPUs(ctx context.Context, team device.Team, size unit.Bytes, iters int, products []device.Request,
	show func(string),
) (*GPUNode, error) {
	begin := time.Now()
	d := &GPUNode{Host: team[0].Hello.Host, Peers: []GPUPeer{}, Refused: []gpu.Refusal{}, Notes: []string{}}
	if busy := Busy(ctx, team); busy != "" {
		d.Notes = append(d.Notes, busy+": rates are of a GPU that others use too")
	}
	for _, w := range team {
		d.GPUs = append(d.GPUs, GPUDevice{Device: w.Device, Rates: []device.Rate{}, Products: []GPUProduct{}})
	}
	less := int64(min(size, 256*unit.MiB))
	d.ask(ctx, team, "memory", device.Request{Do: device.Memory, Bytes: int64(size), Warm: 2, Iters: iters}, show)
	d.ask(ctx, team, "copies between host and GPU",
		device.Request{Do: device.Copies, Bytes: less, Warm: 1, Iters: min(iters, 10)}, show)
	for _, q := range products {
		d.ask(ctx, team, fmt.Sprintf("product %dx%dx%d:%s", q.M, q.N, q.K, q.Dtype), q, show)
	}
	if len(team) == 1 {
		d.Notes = append(d.Notes, "one GPU: no copies between GPUs and no collective")
	}
	for i := range team { // one after the other: they share switches
		for j := range team {
			if i != j {
				d.ask(ctx, team[i:i+1], fmt.Sprintf("copies from GPU %d to GPU %d", i, j),
					device.Request{Do: device.Peer, GPU: i, Other: j, Bytes: less, Warm: 1, Iters: min(iters, 5)}, show)
			}
		}
	}
	err := context.Cause(ctx)
	if err == nil && len(team) > 1 {
		err = d.collectives(ctx, team, min(size, 512*unit.MiB), iters, show)
	}
	d.Seconds = time.Since(begin).Seconds()
	return d, err
}

// ask asks some GPUs at once, and keeps what they answer.
func (d *GPUNode) ask(ctx context.Context, team device.Team, what string, q device.Request, show func(string)) {
	if ctx.Err() != nil {
		return
	}
	show(what)
	answers, err := team.All(ctx, q, nil)
	if err != nil {
		d.Refused = append(d.Refused, gpu.Refusal{Setting: what, Why: err.Error()})
		return
	}
	for i, a := range answers {
		g := &d.GPUs[i]
		for _, r := range a.Rates {
			d.count(r.Wrong)
		}
		switch {
		case q.Do == device.Peer:
			p := GPUPeer{From: q.GPU, To: q.Other}
			for _, r := range a.Rates {
				if r.What == "peer" {
					p.GBps = r.GBps
				} else {
					p.Both = r.GBps
				}
			}
			d.Peers, d.Notes = append(d.Peers, p), append(d.Notes, a.Notes...)
		case a.Product != nil:
			g.Products = append(g.Products, GPUProduct{q.M, q.N, q.K, q.Dtype, *a.Product})
			d.Bad += int64(a.Product.Wrong)
		default:
			g.Rates = append(g.Rates, a.Rates...)
		}
	}
}

func (d *GPUNode) count(wrong *int64) {
	if wrong != nil {
		d.Bad += *wrong
	}
}

// collectives measures some over all GPUs.
func (d *GPUNode) collectives(ctx context.Context, team device.Team, most unit.Bytes, iters int,
	show func(string),
) error {
	if err := team.Join(ctx); err != nil {
		return err
	}
	own := gpu.Own{Warm: 5, Iters: iters, Check: true, Timeout: time.Minute, Setting: gpu.Auto}
	for _, kind := range []coll.Kind{coll.AllReduce, coll.AllGather, coll.AllToAll} {
		s, err := own.Sweep(ctx, team, kind, []unit.Bytes{64 * unit.KiB, 16 * unit.MiB, most},
			func(b unit.Bytes) { show(fmt.Sprintf("%s of %v", kind, b)) })
		if err != nil {
			return err
		}
		d.Results = append(d.Results, s)
		for _, r := range s.Rows() {
			d.count(r.Wrong)
		}
	}
	return nil
}
