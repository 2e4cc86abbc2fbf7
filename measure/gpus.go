package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"busbar.dev/calibrate"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
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

// liveShapes are layers of transformers, large and small, and of other depth than width: how a rate goes with the
// shape.
var liveShapes = []string{
	"8192x8192x8192:bfloat16", "4096x4096x4096:bfloat16", "2048x2048x2048:bfloat16", "2048x5120x5120:bfloat16",
	"4096x11008x4096:bfloat16", "4096x4096x11008:bfloat16", "8192x3072x1024:bfloat16", "16384x4096x14336:bfloat16",
	"8192x8192x8192:f8e4m3", "4096x11008x4096:f8e4m3",
}

// A product runs this long before its clock counts: in training power has settled, and clocks with it.
const (
	liveHeat  = 1.5e6 // µs, before the first
	liveTimed = 0.5e6
)

// Kernels measures products and a copy within memory on all GPUs at once, as they are in training. A GPU on which no
// product can be measured is known by its memory alone.
func Kernels(ctx context.Context, team device.Team, model hardware.GPUModel,
	show func(string), note func(...string),
) (list []calibrate.Kernel, err error) {
	shapes, err := Products(liveShapes, device.Request{Warm: 2, Iters: 3})
	if err != nil {
		return nil, err
	}
	heat := liveHeat
	for _, r := range shapes {
		if needs := map[string]cluster.Dtype{
			"bfloat16": cluster.BF16, "f8e4m3": cluster.FP8,
		}[r.Dtype]; model.Peak[needs] <= 0 {
			continue
		}
		name := calibrate.NewProduct(r.M, r.N, r.K, r.Dtype, 0).Name
		show("product " + name)
		answers, err := team.All(ctx, r, nil)
		if err == nil && answers[0].Product != nil && answers[0].Product.Micros > 0 {
			us := answers[0].Product.Micros
			r.Warm, r.Iters, r.Check = min(20000, 1+int(heat/us)), min(20000, 1+int(liveTimed/us)), true
			heat = liveTimed / 2
			answers, err = team.All(ctx, r, nil)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			note(fmt.Sprintf("product %s was not measured: %v", name, err))
			continue
		}
		us, mid := medianOf(answers, func(a device.Answer) float64 { return a.Product.Micros })
		p := answers[mid].Product
		if p.Wrong > 0 {
			return nil,
				failure.Cannot(fmt.Errorf("product %s on %s: %d of %d elements that were computed again are wrong", name,
					team[mid].Hello.Host, p.Wrong, p.Tested))
		}
		x := calibrate.NewProduct(r.M, r.N, r.K, r.Dtype, us)
		x.MHz, x.Watts, x.Rate = p.MHz, p.Watts, fmt.Sprintf("%.1f TFLOPS", p.TFLOPS)
		list = append(list, x)
	}
	show("memory")
	x, err := copied(ctx, team)
	return append(list, x), err
}

// copied measures a copy within the GPUs' memory.
func copied(ctx context.Context, team device.Team) (x calibrate.Kernel, err error) {
	const size = unit.GiB
	answers, err := team.All(ctx, device.Request{Do: device.Memory, Bytes: int64(size), Warm: 20, Iters: 200}, nil)
	if err != nil {
		return x, failure.Cannot(err)
	}
	gbps, _ := medianOf(answers, func(a device.Answer) float64 {
		for _, r := range a.Rates {
			if r.What == "copy" {
				return r.GBps
			}
		}
		return 0
	})
	if gbps <= 0 {
		return x, failure.Cannot(fmt.Errorf("%s answered without a rate of its memory", team[0].Hello.Program))
	}
	x = calibrate.NewCopy(size, 2*float64(size)/gbps/1e3)
	x.Rate = fmt.Sprintf("%.1f GB/s", gbps)
	return x, nil
}

// medianOf is the middle of what ranks answered, and whose it is.
func medianOf(answers []device.Answer, of func(device.Answer) float64) (float64, int) {
	at := make([]int, len(answers))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(of(answers[a]), of(answers[b])) })
	mid := at[len(at)/2]
	return of(answers[mid]), mid
}
