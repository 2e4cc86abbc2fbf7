// Package nsys reads the list of GPU operations that Nsight Systems exports of a profile: nsys stats --report
// cuda_gpu_trace as CSV. Each GPU in it becomes a trace. Collectives have no sizes in it, and steps no marks.
package nsys

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/result/trace"
)

// The columns that are read.
const (
	colStart  = "Start (ns)"
	colDur    = "Duration (ns)"
	colDevice = "Device"
	colName   = "Name"
	colStream = "Strm"
)

// Limits on what one list may hold.
const (
	maxGPUs  = 64
	maxCalls = 1 << 16 // collectives that are told apart, by the names of their kernels
)

// Match reports a list by its beginning.
func Match(head []byte) bool {
	return bytes.Contains(head, []byte(colStart)) && bytes.Contains(head, []byte(colDur)) &&
		bytes.Contains(head, []byte(colStream))
}

// gpu is the trace of one GPU, and where its calls stand by the names of their kernels.
type gpu struct {
	trace.Trace
	calls map[string]int32
}

// Read reads all GPUs of a list.
func Read(name string, r io.Reader) ([]*trace.Trace, error) {
	gpus := map[string]*gpu{}
	events := 0
	err := eachRow(r, func(get func(string) string) error {
		start, err1 := strconv.ParseInt(get(colStart), 10, 64)
		dur, err2 := strconv.ParseInt(get(colDur), 10, 64)
		if err1 != nil || err2 != nil || start < 0 || dur < 0 || dur > 1<<60 || start > 1<<60 {
			return nil
		}
		if events++; events > trace.MaxEvents {
			return fmt.Errorf("more than %d kernels; profile fewer steps", trace.MaxEvents)
		}
		device := get(colDevice)
		g := gpus[device]
		if g == nil && len(gpus) >= maxGPUs {
			return fmt.Errorf("more than %d GPUs; expected the list of one node", maxGPUs)
		}
		if g == nil {
			g = newGPU(name, strings.Clone(device))
			gpus[g.GPU] = g
		}
		g.addEvent(trace.Interval{Start: start, End: start + dur}, get)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(gpus) == 0:
		return nil, fmt.Errorf("%s: no kernels in this profile", name)
	}
	var list []*trace.Trace
	for _, g := range slices.SortedFunc(maps.Values(gpus), func(a, b *gpu) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.GPU, b.GPU))
	}) {
		g.GPU, _, _ = strings.Cut(g.GPU, " (")
		g.Sort()
		list = append(list, &g.Trace)
	}
	return list, nil
}

// newGPU begins the trace of a GPU, "NVIDIA H100 80GB HBM3 (0)".
func newGPU(file, device string) *gpu {
	g := &gpu{calls: map[string]int32{}}
	g.File, g.Tool, g.Rank, g.GPU = file, "Nsight Systems", -1, device
	_, number, _ := strings.Cut(device, " (")
	g.Device, _ = strconv.Atoi(strings.TrimSuffix(number, ")"))
	return g
}

// addEvent adds one row: a kernel, or a copy, whose name is in brackets.
func (g *gpu) addEvent(at trace.Interval, get func(string) string) {
	stream, _ := strconv.ParseInt(get(colStream), 10, 32)
	e := trace.Event{Interval: at, Device: int32(g.Device), Stream: int32(stream), Call: -1, Seq: -1}
	name := get(colName)
	switch c, is := trace.FromKernel(name); {
	case strings.HasPrefix(name, "["):
		e.Kind = trace.Copy
		if strings.Contains(name, "Peer-to-Peer") || strings.Contains(name, "PtoP") {
			e.Kind = trace.Comm
		}
	case is:
		id, ok := g.calls[name]
		if !ok && len(g.calls) < maxCalls {
			id = int32(len(g.Calls))
			g.calls[strings.Clone(name)] = id
			g.Calls = append(g.Calls, c)
		}
		e.Kind, e.Call = trace.Comm, id
	default:
		e.FP32 = trace.SlowMatmul(name)
	}
	g.Events = append(g.Events, e)
}

// eachRow hands the rows below the heads of the columns to row, which gets their fields by name.
func eachRow(r io.Reader, row func(get func(string) string) error) error {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.LazyQuotes, c.ReuseRecord = -1, true, true
	var column map[string]int
	for {
		rec, err := c.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case column == nil:
			if len(rec) > 5 && strings.TrimSpace(rec[0]) == colStart {
				column = map[string]int{}
				for i, head := range rec {
					column[strings.Clone(head)] = i
				}
			}
			continue
		}
		err = row(func(name string) string {
			if i, ok := column[name]; ok && i < len(rec) {
				return rec[i]
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
}
