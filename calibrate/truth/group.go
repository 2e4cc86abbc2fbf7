package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Group is one sweep as published.
type Group struct {
	ID         string            `json:"id"`
	Source     string            `json:"source"`
	Collective string            `json:"collective"`
	Dtype      string            `json:"dtype"`
	Nodes      int               `json:"nodes"`
	PerNode    int               `json:"gpus_per_node"`
	Ranks      int               `json:"n_ranks"`
	GPU        string            `json:"gpu"`
	Intra      string            `json:"intra"`
	NICs       *float64          `json:"nics_per_node"`
	Gbps       *float64          `json:"nic_gbps"`
	Fabric     string            `json:"fabric"`
	NCCL       string            `json:"nccl_version"`
	Algo       string            `json:"algo"`
	Proto      string            `json:"proto"`
	Env        map[string]string `json:"env"`
	Tool       string            `json:"tool"`
	Sizes      []float64         `json:"sizes_bytes"`
	Time       []*float64        `json:"time_us"`
	AlgBW      []*float64        `json:"algbw_GBps"`
	BusBW      []*float64        `json:"busbw_GBps"`
	Class      string            `json:"hw_class"`
	Grade      string            `json:"grade"`
	Anomalous  bool              `json:"anomalous"`
	Notes      string            `json:"notes"`
	// Predicted is what was predicted where it was measured, see Own.
	Predicted []*float64 `json:"predicted_us"`

	File string `json:"-"`
	Line int    `json:"-"`
}

// maxLine bounds one group; the longest real ones have some kilobytes.
const maxLine = 16 << 20

// Left is something that was read and is not part of a score, with the reason.
type Left struct {
	ID     string
	Reason string
	Points int // measured points that it has
	// Fair says that it was left out by rule (anomalous, grade C, no collective at
	// all) and not because it cannot be predicted.
	Fair bool
	// Class is the source's class of hardware, Machine where it was measured.
	Class, Machine string
}

// maxLines bounds a file; the real ones have some hundred lines.
const maxLines = 1 << 20

// Read reads groups, one a line. Lines about other things than collectives
// (training points) are left, by id; a line without an id is an error that names it.
func Read(name string, r io.Reader) ([]Group, []Left, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var list []Group
	var left []Left
	for line := 1; sc.Scan(); line++ {
		b := sc.Bytes()
		if line == 1 {
			b = bytes.TrimPrefix(b, []byte("\ufeff")) // as editors on Windows write it
		}
		b = bytes.TrimSpace(b)
		if len(b) == 0 {
			continue
		}
		if line > maxLines {
			return nil, nil, fmt.Errorf("%s: more than %d lines; expected measured collectives, one a line", name, maxLines)
		}
		g, why, err := readLine(b)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s:%d: %w", name, line, err)
		case why != "":
			left = append(left, Left{ID: g.ID, Reason: fmt.Sprintf("%s:%d: %s", name, line, why), Points: 1, Fair: true})
		default:
			g.File, g.Line = name, line
			list = append(list, g)
		}
	}
	if err := sc.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, nil, fmt.Errorf("%s: a line of more than %d bytes; expected one JSON object a line", name, maxLine)
		}
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, left, nil
}

// readLine reads one line; why says that it is about something else.
func readLine(b []byte) (g Group, why string, err error) {
	var kind struct {
		ID         string          `json:"id"`
		Collective json.RawMessage `json:"collective"`
		Measured   json.RawMessage `json:"measured"`
		Model      json.RawMessage `json:"model"`
	}
	const want = `expected one JSON object a line with id, collective, sizes_bytes and time_us`
	if b[0] != '{' {
		return g, "", errors.New(want)
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return g, "", fmt.Errorf("%w; %s", plain(err), want)
	}
	if kind.ID == "" {
		return g, "", errors.New("a line without an id; " + want)
	}
	switch {
	case kind.Collective == nil && kind.Measured != nil && kind.Model != nil:
		return Group{ID: kind.ID}, "a training point, not a collective; `busbar step` predicts those", nil
	case kind.Collective == nil:
		return Group{ID: kind.ID}, "neither a collective nor a training point", nil
	}
	if err := json.Unmarshal(b, &g); err != nil {
		return g, "", fmt.Errorf("%w; %s", plain(err), want)
	}
	if g.Ranks == 0 {
		g.Ranks = g.Nodes * g.PerNode
	}
	return g, "", nil
}

// plain says which field has a value of the wrong kind, in the words of JSON.
func plain(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) || t.Type == nil {
		return err
	}
	expected := "null or nothing"
	switch t.Type.Kind() {
	case reflect.Int:
		expected = "a whole number"
	case reflect.Float64:
		expected = "a number"
	case reflect.String:
		expected = "text in quotes"
	case reflect.Bool:
		expected = "true or false"
	case reflect.Slice:
		expected = "a list"
	case reflect.Map, reflect.Struct:
		expected = "an object"
	}
	return fmt.Errorf("%s has a JSON %s where %s belongs", t.Field, t.Value, expected)
}

// Point is one measured size.
type Point struct {
	Op   coll.Op
	Time unit.Time
}

// Points are the measured sizes of a group whose collective is one of ours. Where
// the source gives a bandwidth only, the time follows from it.
func (g *Group) Points() ([]Point, error) {
	kind, err := coll.ParseKind(g.Collective)
	if err != nil {
		return nil, fmt.Errorf("%.40q is none of the collectives that busbar models", g.Collective)
	}
	dtype := coll.Float
	if g.Dtype != "" {
		if dtype, err = coll.ParseDtype(g.Dtype); err != nil {
			return nil, err
		}
	}
	if g.Ranks != g.Nodes*g.PerNode {
		return nil, fmt.Errorf("%d ranks on %d nodes with %d GPUs each; expected one rank a GPU", g.Ranks, g.Nodes, g.PerNode)
	}
	var list []Point
	for i, size := range g.Sizes {
		if !(size >= 0 && size < 1<<60) {
			return nil, fmt.Errorf("size %g; expected bytes", size)
		}
		op := coll.Op{Kind: kind, Bytes: unit.Bytes(size), Type: dtype}
		if us, ok := g.micros(i, op); ok && us >= 1e-3 && us <= 1e12 {
			list = append(list, Point{Op: op, Time: unit.Time(math.Round(us * 1e6))})
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no size with a time or a bandwidth")
	}
	return list, nil
}

// micros is the time of one size in µs.
func (g *Group) micros(i int, op coll.Op) (float64, bool) {
	good := func(list []*float64) (float64, bool) {
		if i >= len(list) || list[i] == nil || !(*list[i] > 0) || *list[i] > 1e12 {
			return 0, false
		}
		return *list[i], true
	}
	if us, ok := good(g.Time); ok {
		return us, true
	}
	if gb, ok := good(g.AlgBW); ok {
		return float64(op.AlgBytes(g.Ranks)) / gb / 1e3, true
	}
	if gb, ok := good(g.BusBW); ok {
		return float64(op.AlgBytes(g.Ranks)) * op.Kind.BusFactor(g.Ranks) / gb / 1e3, true
	}
	return 0, false
}
