// Package kineto reads the traces of PyTorch's profiler (torch.profiler, export_chrome_trace): kernels and copies of a
// rank's GPU, the steps it marked, and the collectives with their sizes and process groups, which PyTorch writes from
// 2.1 on.
package kineto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/words"
	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// Match reports a trace by its beginning.
func Match(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && traceKey.Match(head) &&
		!lines.Has(head, `"busbar`)
}

var traceKey = lazyre.New(`"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo)"`)

// Read reads the trace of one rank.
func Read(name string, r io.Reader) (*trace.Trace, error) {
	b := &builder{
		Trace: trace.Trace{File: name, Tool: "PyTorch profiler", Rank: -1}, calls: map[string]int32{},
		devices: map[int32]int{}, hostStep: map[string]trace.Interval{}, gpuStep: map[string]trace.Interval{},
	}
	if err := b.document(json.NewDecoder(r)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.finish()
}

type builder struct {
	trace.Trace

	gpus     []device
	calls    map[string]int32
	devices  map[int32]int
	hostStep map[string]trace.Interval
	gpuStep  map[string]trace.Interval // the profiler marks a step once for every stream
}

type device struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

// document goes through the object without holding it: a trace may be gigabytes.
func (b *builder) document(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not a trace of PyTorch's profiler: expected a JSON object with traceEvents"), err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "traceEvents":
			err = b.events(d)
		case "deviceProperties":
			err = lenient(d, &b.gpus)
		case "distributedInfo":
			var info struct {
				Rank  *int   `json:"rank"`
				World int    `json:"world_size"`
				NCCL  string `json:"nccl_version"`
			}
			if err = lenient(d, &info); err == nil {
				b.World, b.NCCL = info.World, info.NCCL
				if info.Rank != nil {
					b.Rank = *info.Rank
				}
			}
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lenient reads a value that does not matter if it has another shape.
func lenient(d *json.Decoder, v any) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	_ = json.Unmarshal(raw, v)
	return nil
}

type event struct {
	Phase string          `json:"ph"`
	Cat   string          `json:"cat"`
	Name  string          `json:"name"`
	Start json.RawMessage `json:"ts"`
	Dur   json.RawMessage `json:"dur"`
	Args  json.RawMessage `json:"args"`
}

func (b *builder) events(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("traceEvents: expected an array"), err)
	}
	for d.More() {
		var e event
		if err := d.Decode(&e); err != nil {
			if bad := new(json.UnmarshalTypeError); errors.As(err, &bad) {
				continue // an event of another program's shape
			}
			return err
		}
		if e.Phase == "X" {
			if err := b.event(&e); err != nil {
				return err
			}
		}
	}
	_, err := d.Token()
	return err
}

// event keeps what runs on the GPU, and steps.
func (b *builder) event(e *event) error {
	cat := strings.ToLower(e.Cat)
	step := strings.HasPrefix(e.Name, "ProfilerStep#")
	gpu := slices.Contains(strings.Fields("kernel gpu_memcpy gpu_memset memcpy memset"), cat)
	if !gpu && !step && cat != "overhead" {
		return nil
	}
	start, ok1 := nanoseconds(e.Start)
	dur, ok2 := nanoseconds(e.Dur)
	if !ok1 || !ok2 || dur < 0 || start > 1<<62 || dur > 1<<60 {
		return nil
	}
	at := trace.Interval{Start: start, End: start + dur}
	switch {
	case step && strings.HasPrefix(cat, "gpu"):
		return mark(b.gpuStep, e.Name, at)
	case step:
		return mark(b.hostStep, e.Name, at)
	case !gpu:
		if len(b.Overhead) < maxSteps {
			b.Overhead = append(b.Overhead, at)
		}
		return nil
	case len(b.Events) >= trace.MaxEvents:
		return fmt.Errorf("more than %d kernels; profile fewer steps", trace.MaxEvents)
	}
	var a args
	_ = json.Unmarshal(e.Args, &a) // what it does not say is unknown
	x := trace.Event{Interval: at, Device: a.Device, Stream: a.Stream, Call: -1, Seq: -1}
	switch {
	case cat == "kernel":
		if c, ok := a.call(e.Name); ok {
			x.Kind, x.Call = trace.Comm, b.intern(&c)
			if a.Seq != nil {
				x.Seq = *a.Seq
			}
		} else {
			x.FP32 = trace.SlowMatmul(e.Name)
		}
	case strings.Contains(e.Name, "PtoP"):
		x.Kind = trace.Comm
	default:
		x.Kind = trace.Copy
	}
	b.devices[a.Device]++
	b.Events = append(b.Events, x)
	return nil
}

// maxSteps bounds the marked steps of a trace.
const maxSteps = 1 << 20

// mark joins the marks of one step.
func mark(steps map[string]trace.Interval, name string, at trace.Interval) error {
	if old, ok := steps[name]; ok {
		at = trace.Interval{Start: min(at.Start, old.Start), End: max(at.End, old.End)}
	} else if len(steps) >= maxSteps {
		return fmt.Errorf("more than %d steps; profile fewer", maxSteps)
	}
	steps[name] = at
	return nil
}

// nanoseconds reads µs with decimals exactly: stamps since 1970 have more digits than a float64.
func nanoseconds(text json.RawMessage) (int64, bool) {
	whole, frac, _ := strings.Cut(string(text), ".")
	us, err := strconv.ParseInt(whole, 10, 64)
	ns, err2 := strconv.ParseUint((frac + "000")[:3], 10, 64)
	if err != nil || err2 != nil || us > 1<<52 || us < 0 {
		f, err := strconv.ParseFloat(string(text), 64)
		return int64(f * 1e3), err == nil && f < 1<<52 && f >= 0
	}
	return us*1000 + int64(ns), true
}

// args are what PyTorch writes about a kernel and the collective that started it.
type args struct {
	Device int32  `json:"device"`
	Stream int32  `json:"stream"`
	Name   string `json:"Collective name"`
	In     int64  `json:"In msg nelems"`
	Out    int64  `json:"Out msg nelems"`
	Size   int    `json:"Group size"`
	Dtype  string `json:"dtype"`
	Group  string `json:"Process Group Name"`
	Desc   string `json:"Process Group Description"`
	Ranks  string `json:"Process Group Ranks"`
	Seq    *int64 `json:"Seq"`
}

// call is the collective of a kernel.
func (a *args) call(kernel string) (trace.Call, bool) {
	c, ok := trace.FromKernel(kernel)
	if !ok && a.Name == "" {
		return c, false
	}
	c.Group, c.Desc, c.Size = a.Group, a.Desc, a.Size
	name := strings.ToLower(a.Name)
	c.P2P = c.P2P && name == "" || name == "send" || name == "recv"
	if op := trace.Operation(name); op != coll.None {
		c.Op, c.P2P = op, false
	} else if c.P2P {
		c.Op = coll.SendRecv
	}
	n := a.In // of the elements that nccl-tests counts as the size of the operation
	if c.Op == coll.AllGather || c.Op == coll.Gather {
		n = max(n, a.Out)
	}
	if n > 0 && n <= 1<<48 {
		c.Bytes = unit.Bytes(n * width(a.Dtype))
	}
	var ranks []int
	if json.Unmarshal([]byte(a.Ranks), &ranks) == nil {
		c.Ranks = ranks
	}
	return c, true
}

// widths are the bytes of an element by PyTorch's names.
var widths = words.Pairs("double=8|long=8|float=4|int=4|half=2|bfloat16=2|short=2|byte=1|char=1|bool=1|" +
	"complexfloat=8|complexdouble=16|unsignedchar=1")

func width(dtype string) int64 {
	dtype = strings.ToLower(strings.TrimPrefix(dtype, "c10::"))
	if strings.HasPrefix(dtype, "float8") {
		return 1
	}
	return int64(num.Or(widths[dtype], 1, 16, 0))
}

// intern keeps equal calls once.
func (b *builder) intern(c *trace.Call) int32 {
	id := fmt.Sprint(c.Op, c.P2P, c.Bytes, c.Group, c.Desc, c.Size, c.Ranks, c.Algo)
	at, ok := b.calls[id]
	if !ok {
		at = int32(len(b.Calls))
		b.calls[id] = at
		b.Calls = append(b.Calls, *c)
	}
	return at
}

// finish takes the device with most events, and the steps as the GPU saw them where that was recorded.
func (b *builder) finish() (*trace.Trace, error) {
	if len(b.Events) == 0 {
		return nil, fmt.Errorf("%s: no kernels in this trace; profile with ProfilerActivity.CUDA", b.File)
	}
	best := int32(0)
	for id, n := range b.devices {
		if m := b.devices[best]; n > m || n == m && id < best {
			best = id
		}
	}
	kept := b.Events[:0]
	for _, e := range b.Events {
		if e.Device == best {
			kept = append(kept, e)
		}
	}
	b.Events, b.Device = kept, int(best)
	for _, g := range b.gpus {
		if g.ID == int(best) {
			b.GPU = g.Name
		}
	}
	if b.Steps = slices.Collect(maps.Values(b.gpuStep)); len(b.Steps) == 0 {
		b.Steps = slices.Collect(maps.Values(b.hostStep))
	}
	b.Whole = true // the host runs ahead of the GPU, and the profiler keeps the kernels that it started
	b.Sort()
	return &b.Trace, nil
}
