// Package nsys reads what Nsight Systems exports of a profile: its SQLite database (nsys export --type sqlite). A
// profile may hold several GPUs and processes; each GPU of a process becomes a trace. Collectives have no sizes in it.
package nsys

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/sqlite"
	"busbar.dev/result/trace"
)

// Match reports a database by its beginning.
func Match(head []byte) bool { return bytes.HasPrefix(head, []byte(sqlite.Magic)) }

// Tables and columns of the export, which kept these names from 2020 to 2026.
const (
	kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
	memcpy  = "CUPTI_ACTIVITY_KIND_MEMCPY"
	memset  = "CUPTI_ACTIVITY_KIND_MEMSET"
	nvtx    = "NVTX_EVENTS"
)

// peerToPeer is CUPTI's number of a copy between two GPUs.
const peerToPeer = 10

// key is one GPU of one process.
type key struct{ pid, device int64 }

type builder struct {
	file    string
	names   map[int64]string
	calls   map[int64]trace.Call
	isCall  map[int64]bool
	traces  map[key]*trace.Trace
	index   map[key]map[int64]int32
	events  int
	devices map[int64]string
}

// Read reads all GPUs of an export.
func Read(name string, r io.ReaderAt, size int64) ([]*trace.Trace, error) {
	db, err := sqlite.Open(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !db.Has(kernels, "start", "end", "shortName") {
		return nil, fmt.Errorf("%s: an SQLite database without Nsight's table of kernels (%s); profile with --trace=cuda, "+
			"then nsys export --type sqlite", name, kernels)
	}
	b := &builder{
		file: name, names: map[int64]string{}, calls: map[int64]trace.Call{}, isCall: map[int64]bool{},
		traces: map[key]*trace.Trace{}, index: map[key]map[int64]int32{}, devices: map[int64]string{},
	}
	for _, read := range []func(*sqlite.File) error{b.strings, b.gpus, b.kernels, b.copies, b.steps} {
		if err := read(db); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.finish()
}

// maxNames bounds the strings that are kept, each of at most maxName bytes.
const (
	maxNames = 1 << 20
	maxName  = 512
)

func (b *builder) strings(db *sqlite.File) error {
	if !db.Has("StringIds", "id", "value") {
		return nil
	}
	return db.Rows("StringIds", []string{"id", "value"}, func(v []sqlite.Value) error {
		if len(b.names) < maxNames {
			b.names[v[0].Int] = string(v[1].Bytes[:min(len(v[1].Bytes), maxName)])
		}
		return nil
	})
}

func (b *builder) gpus(db *sqlite.File) error {
	if !db.Has("TARGET_INFO_GPU", "name") {
		return nil
	}
	return db.Rows("TARGET_INFO_GPU", []string{"id", "name"}, func(v []sqlite.Value) error {
		b.devices[v[0].Int] = string(v[1].Bytes[:min(len(v[1].Bytes), maxName)])
		return nil
	})
}

func (b *builder) kernels(db *sqlite.File) error {
	return db.Rows(kernels, []string{"start", "end", "deviceId", "streamId", "shortName", "globalPid", "demangledName"},
		func(v []sqlite.Value) error {
			name := v[4].Int
			if _, ok := b.isCall[name]; !ok {
				c, is := trace.FromKernel(b.names[name])
				if !is {
					c, is = trace.FromKernel(b.names[v[6].Int])
				}
				b.calls[name], b.isCall[name] = c, is
			}
			k, e := eventOf(v[0].Int, v[1].Int, v[5].Int, v[2].Int, v[3].Int)
			if b.isCall[name] {
				e.Kind, e.Call = trace.Comm, b.call(k, name)
			} else {
				e.FP32 = trace.SlowMatmul(b.names[name])
			}
			return b.addEvent(k, e)
		})
}

// eventOf is a kernel that is no call, and whose GPU it ran on.
func eventOf(start, end, pid, device, stream int64) (key, trace.Event) {
	return key{pid, device}, trace.Event{
		Interval: trace.Interval{Start: start, End: end}, Device: int32(device), Stream: int32(stream), Call: -1, Seq: -1,
	}
}

// call is the number of a call in the trace of a GPU.
func (b *builder) call(k key, name int64) int32 {
	t := b.trace(k)
	at, ok := b.index[k][name]
	if !ok {
		at = int32(len(t.Calls))
		b.index[k][name] = at
		t.Calls = append(t.Calls, b.calls[name])
	}
	return at
}

func (b *builder) trace(k key) *trace.Trace {
	t := b.traces[k]
	if t == nil {
		t = &trace.Trace{File: b.file, Tool: "Nsight Systems", Rank: -1, Device: int(k.device), GPU: b.devices[k.device]}
		b.traces[k], b.index[k] = t, map[int64]int32{}
	}
	return t
}

func (b *builder) addEvent(k key, e trace.Event) error {
	if e.End < e.Start || e.Start < 0 || e.End > 1<<60 {
		return nil // an operation that was not over when the profile ended
	}
	if b.events++; b.events > trace.MaxEvents {
		return fmt.Errorf("more than %d kernels; profile fewer steps", trace.MaxEvents)
	}
	t := b.trace(k)
	t.Events = append(t.Events, e)
	return nil
}

func (b *builder) copies(db *sqlite.File) error {
	for _, table := range []string{memcpy, memset} {
		if !db.Has(table, "start", "end") {
			continue
		}
		err := db.Rows(table, []string{"start", "end", "deviceId", "streamId", "globalPid", "copyKind"},
			func(v []sqlite.Value) error {
				k, e := eventOf(v[0].Int, v[1].Int, v[4].Int, v[2].Int, v[3].Int)
				if e.Kind = trace.Copy; table == memcpy && v[5].Int == peerToPeer {
					e.Kind = trace.Comm
				}
				return b.addEvent(k, e)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// stepText is how programs name the range of a step.
var stepText = lazyre.New(`(?i)^(train(ing)?[ _-]*)?(profiler *)?(step|iter|iteration)[ _#:=-]*\d+$`)

// steps are NVTX ranges that are named so, of the process whose thread marked them.
func (b *builder) steps(db *sqlite.File) error {
	if !db.Has(nvtx, "start", "end") {
		return nil
	}
	return db.Rows(nvtx, []string{"start", "end", "text", "textId", "globalTid"}, func(v []sqlite.Value) error {
		text := string(v[2].Bytes[:min(len(v[2].Bytes), maxName)])
		if text == "" && !v[3].Null {
			text = b.names[v[3].Int]
		}
		if v[1].Null || v[1].Int <= v[0].Int || !stepText.MatchString(strings.TrimSpace(text)) {
			return nil
		}
		for k, t := range b.traces {
			if k.pid>>24 == v[4].Int>>24 && len(t.Steps) < 1<<20 {
				t.Steps = append(t.Steps, trace.Interval{Start: v[0].Int, End: v[1].Int})
			}
		}
		return nil
	})
}

// finish orders the GPUs.
func (b *builder) finish() ([]*trace.Trace, error) {
	var list []*trace.Trace
	keys := make([]key, 0, len(b.traces))
	for k := range b.traces {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y key) int { return cmp.Or(cmp.Compare(x.device, y.device), cmp.Compare(x.pid, y.pid)) })
	for _, k := range keys {
		t := b.traces[k]
		t.Sort()
		list = append(list, t)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no kernels in this profile", b.file)
	}
	return list, nil
}
