package nsys

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/result/trace"
)

// The columns of nsys stats --report cuda_gpu_trace that are read.
const (
	colStart  = "Start (ns)"
	colDur    = "Duration (ns)"
	colDevice = "Device"
	colName   = "Name"
	colStream = "Strm"
)

func matchList(head []byte) bool {
	return bytes.Contains(head, []byte(colStart)) && bytes.Contains(head, []byte(colDur)) &&
		bytes.Contains(head, []byte(colStream))
}

// readList reads the list as CSV.
func readList(name string, r io.Reader) ([]*trace.Trace, error) {
	b := newBuilder(name)
	ids := map[string]int64{}
	row := func(get func(string) string) error {
		start, err1 := strconv.ParseInt(get(colStart), 10, 64)
		dur, err2 := strconv.ParseInt(get(colDur), 10, 64)
		if err1 != nil || err2 != nil || dur < 0 || dur > 1<<60 || start > 1<<60 {
			return nil
		}
		return b.listed(ids, start, dur, get)
	}
	if err := csvRows(r, row); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.finish()
}

// listed adds one row: a kernel, or a copy, whose name is in brackets.
func (b *builder) listed(ids map[string]int64, start, dur int64, get func(string) string) error {
	stream, _ := strconv.ParseInt(get(colStream), 10, 32)
	gpu, number := get(colDevice), int64(0)
	if i, j := strings.LastIndexByte(gpu, '('), strings.LastIndexByte(gpu, ')'); i >= 0 && j > i {
		number, _ = strconv.ParseInt(gpu[i+1:j], 10, 32)
		gpu = strings.TrimSpace(gpu[:i])
	}
	b.devices[number] = gpu
	k, e := eventOf(start, start+dur, 0, number, stream)
	name := get(colName)
	switch c, is := trace.FromKernel(name); {
	case strings.HasPrefix(name, "["):
		e.Kind = trace.Copy
		if strings.Contains(name, "Peer-to-Peer") || strings.Contains(name, "PtoP") {
			e.Kind = trace.Comm
		}
	case is:
		id, ok := ids[name]
		if !ok && len(ids) < maxNames {
			id = int64(len(ids)) + 1
			ids[name], b.calls[id] = id, c
		}
		e.Kind, e.Call = trace.Comm, b.call(k, id)
	default:
		e.FP32 = trace.SlowMatmul(name)
	}
	return b.addEvent(k, e)
}

func csvRows(r io.Reader, row func(func(string) string) error) error {
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
		get := func(name string) string {
			if i, ok := column[name]; ok && i < len(rec) {
				return rec[i]
			}
			return ""
		}
		if err := row(get); err != nil {
			return err
		}
	}
}
