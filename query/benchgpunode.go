package query

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// BenchGPUNode measures everything inside a node: memory, copies, products, pairs of GPUs and a collective over all.
type BenchGPUNode struct {
	Helper string   `name:"busbar-gpu" placeholder:"PATH" help:"The program busbar-gpu (default: beside busbar, or in PATH)."`
	Shapes []string `placeholder:"MxNxK:TYPE" help:"Products to measure (default: eight shapes of transformer layers); TYPE is bfloat16, half, float, tf32, double or f8e4m3."`
	Size   Size     `default:"1G" placeholder:"SIZE" help:"Bytes that are copied (default 1G)."`
	Iters  int      `name:"iters" default:"20" least:"1" help:"Measured iterations (default 20)."`
}

// BenchGPUNodeDoc is the answer to BenchGPUNode.
type BenchGPUNodeDoc struct {
	Host    string            `json:"host"`
	GPUs    []BenchGPUDevice  `json:"gpus"`
	Peers   []BenchGPUPeer    `json:"peers"` // copies between GPUs
	Results result.Sweeps     `json:"results"`
	Refused []BenchGPURefusal `json:"refused"`
	Notes   []string          `json:"notes"`
	Seconds float64           `json:"seconds"`
	Bad     int64             `json:"wrong"` // elements
}

// BenchGPUDevice is one GPU.
type BenchGPUDevice struct {
	device.Device
	Rates    []device.Rate     `json:"rates"`
	Products []BenchGPUProduct `json:"products"`
}

// BenchGPUProduct is one product.
type BenchGPUProduct struct {
	M     int    `json:"m"`
	N     int    `json:"n"`
	K     int    `json:"k"`
	Dtype string `json:"dtype"`
	device.Result
}

// BenchGPUPeer is the rate of copies from one GPU to another.
type BenchGPUPeer struct {
	From int     `json:"from"`
	To   int     `json:"to"`
	GBps float64 `json:"GBps"`
	Both float64 `json:"both_GBps"` // both ways at once, together
}

// Wrong reports elements that are not what they must be.
func (d *BenchGPUNodeDoc) Wrong() bool { return d.Bad > 0 }

// nodeShapes are layers of transformers of 1 to 70 billion parameters, and the square that data sheets mean.
var nodeShapes = []string{"8192x8192x8192:bfloat16", "4096x4096x4096:bfloat16", "2048x5120x5120:bfloat16", "4096x11008x4096:bfloat16", "8192x3072x1024:bfloat16", "16384x4096x14336:bfloat16", "8192x8192x8192:f8e4m3", "4096x4096x4096:tf32"}

// RunWith measures. What one GPU refuses does not keep the others from being measured.
func (q BenchGPUNode) RunWith(ctx context.Context, env Env, with Programs) (doc *BenchGPUNodeDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	begin := time.Now()
	size, err := q.Size.bytes()
	if err != nil || size < 4 {
		return nil, fmt.Errorf("--size %s: expected a size such as 1G", q.Size)
	}
	shapes, err := q.products()
	if err != nil {
		return nil, err
	}
	g := GPURanks{Helper: q.Helper}
	team, _, err := g.workers(ctx, with, nil, nil, false)
	if err != nil {
		return nil, err
	}
	defer team.End()
	d := &BenchGPUNodeDoc{Host: team[0].Hello.Host, GPUs: make([]BenchGPUDevice, len(team)), Peers: []BenchGPUPeer{}, Refused: []BenchGPURefusal{}, Notes: []string{}}
	if busy := busyTeam(ctx, team); busy != "" {
		d.Notes = append(d.Notes, busy+": rates are of a GPU that others use too")
	}
	ask := func(what string, q device.Request, take func(rank int, a device.Answer)) error {
		env.progress(what)
		defer env.progress("")
		// One GPU that refuses is no reason to end: its answer says why.
		answers, err := team.All(ctx, q, nil)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.Refused = append(d.Refused, BenchGPURefusal{what, err.Error()})
			return nil
		}
		for r, a := range answers {
			take(r, a)
		}
		return nil
	}
	rates := func(r int, a device.Answer) {
		d.GPUs[r].Rates = append(d.GPUs[r].Rates, a.Rates...)
		for _, x := range a.Rates {
			d.count(x.Wrong)
		}
	}
	for i, w := range team {
		d.GPUs[i] = BenchGPUDevice{Device: w.Device, Rates: []device.Rate{}, Products: []BenchGPUProduct{}}
	}
	if err := ask("memory", device.Request{Do: device.Memory, Bytes: int64(size), Warm: 2, Iters: q.Iters}, rates); err != nil {
		return nil, err
	}
	if err := ask("copies between host and GPU", device.Request{Do: device.Copies, Bytes: int64(min(size, 256*unit.MiB)), Warm: 1, Iters: min(q.Iters, 10)}, rates); err != nil {
		return nil, err
	}
	for _, s := range shapes {
		err := ask(fmt.Sprintf("product %dx%dx%d:%s", s.M, s.N, s.K, s.Dtype), s, func(r int, a device.Answer) {
			if a.Product != nil {
				d.GPUs[r].Products = append(d.GPUs[r].Products, BenchGPUProduct{s.M, s.N, s.K, s.Dtype, *a.Product})
				d.Bad += int64(a.Product.Wrong)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if err := q.among(ctx, env, team, size, d); err != nil {
		return nil, err
	}
	d.Seconds = time.Since(begin).Seconds()
	return d, nil
}

func (d *BenchGPUNodeDoc) count(wrong *int64) {
	if wrong != nil {
		d.Bad += *wrong
	}
}

// among measures what GPUs do with each other.
func (q *BenchGPUNode) among(ctx context.Context, env Env, team device.Team, size unit.Bytes, d *BenchGPUNodeDoc) error {
	if len(team) < 2 {
		d.Notes = append(d.Notes, "one GPU: no copies between GPUs and no collective")
		return nil
	}
	for i := range team { // one after the other: they share switches
		for j := range team {
			if i == j {
				continue
			}
			env.progress(fmt.Sprintf("copies from GPU %d to GPU %d", i, j))
			a, err := team[i].Ask(ctx, device.Request{Do: device.Peer, GPU: i, Other: j, Bytes: int64(min(size, 256*unit.MiB)), Warm: 1, Iters: min(q.Iters, 5)})
			env.progress("")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				d.Refused = append(d.Refused, BenchGPURefusal{fmt.Sprintf("copies from GPU %d to GPU %d", i, j), err.Error()})
				continue
			}
			p := BenchGPUPeer{From: i, To: j}
			for _, r := range a.Rates {
				d.count(r.Wrong)
				if r.What == "peer" {
					p.GBps = r.GBps
				} else {
					p.Both = r.GBps
				}
			}
			d.Peers = append(d.Peers, p)
			d.Notes = append(d.Notes, a.Notes...)
		}
	}
	if err := team.Join(ctx); err != nil {
		return failure.Cannot(err)
	}
	own := gpu.Own{Warm: 5, Iters: q.Iters, Check: true, Timeout: time.Minute, Setting: gpu.Setting{Algo: "auto", Proto: "auto"}}
	for _, kind := range []coll.Kind{coll.AllReduce, coll.AllGather, coll.AllToAll} {
		s, err := own.Sweep(ctx, team, kind, []unit.Bytes{64 * unit.KiB, 16 * unit.MiB, min(size, 512*unit.MiB)}, func(b unit.Bytes) { env.progress(fmt.Sprintf("%s of %v", kind, b)) })
		env.progress("")
		if err != nil {
			return failure.Cannot(err)
		}
		d.Results = append(d.Results, s)
		for _, r := range s.Rows() {
			d.count(r.Wrong)
		}
	}
	return nil
}

// products are the requests of --shapes.
func (q *BenchGPUNode) products() ([]device.Request, error) {
	words := q.Shapes
	if len(words) == 0 {
		words = nodeShapes
	}
	var list []device.Request
	for _, w := range words {
		r := device.Request{Do: device.Product, Warm: 3, Iters: q.Iters, Check: true}
		if n, err := fmt.Sscanf(w, "%dx%dx%d:%s", &r.M, &r.N, &r.K, &r.Dtype); n != 4 || err != nil || min(r.M, r.N, r.K) < 1 {
			return nil, fmt.Errorf("--shapes %s: expected MxNxK:TYPE such as 8192x8192x8192:bfloat16", w)
		}
		list = append(list, r)
	}
	return list, nil
}
