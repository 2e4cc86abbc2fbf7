package truth

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// line is a published sweep as a file has it. What the source does not state is null or absent.
type line struct {
	ID         string            `json:"id"`
	Collective string            `json:"collective"`
	Dtype      string            `json:"dtype"`
	Nodes      int               `json:"nodes"`
	PerNode    int               `json:"gpus_per_node"`
	Ranks      int               `json:"n_ranks"`
	GPU        string            `json:"gpu"`
	Joined     string            `json:"intra"`
	NICs       *float64          `json:"nics_per_node"`
	Gbps       *float64          `json:"nic_gbps"`
	Fabric     string            `json:"fabric"`
	NCCL       string            `json:"nccl_version"`
	Algo       string            `json:"algo"`
	Proto      string            `json:"proto"`
	Env        map[string]string `json:"env"`
	Tool       string            `json:"tool"`
	Launch     string            `json:"launch"`
	Year       json.RawMessage   `json:"year"`
	Notes      string            `json:"notes"`
	Sizes      []float64         `json:"sizes_bytes"`
	Time       []*float64        `json:"time_us"`
	AlgBW      []*float64        `json:"algbw_GBps"`
	BusBW      []*float64        `json:"busbw_GBps"`
	Class      string            `json:"hw_class"`
	Grade      string            `json:"grade"`
	Anomalous  bool              `json:"anomalous"`
}

// maxLine bounds one sweep; the longest real ones have some kilobytes.
const maxLine = 16 << 20

// Left is something that was read and is not part of a score, with the reason.
type Left struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Points int    `json:"points"` // measured points that it has
	// Gradable says that it would count, had it been predicted: it was not left out by rule (anomalous, grade C, no
	// collective at all).
	Gradable bool   `json:"gradable"`
	Class    string `json:"class,omitempty"`   // of its hardware, as the source names it
	Machine  string `json:"machine,omitempty"` // where it was measured
}

// maxLines bounds a file; the real ones have some hundred lines.
const maxLines = 1 << 20

// Read reads published sweeps, one a line. Lines about other things are left, by id; a line without an id is an error
// that names it. A sweep that nothing can be predicted for (a collective that is none of ours) is read too, and its
// Problem says why.
func Read(name string, r io.Reader) (list result.Sweeps, left []Left, err error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for num := 1; sc.Scan(); num++ {
		b := sc.Bytes()
		if num == 1 {
			b = bytes.TrimPrefix(b, []byte("\ufeff")) // as editors on Windows write it
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		if num > maxLines {
			return nil, nil, fmt.Errorf("%s: more than %d lines; expected measured collectives, one a line", name, maxLines)
		}
		where := fmt.Sprintf("%s:%d: ", name, num)
		kind, err := kindOf(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%s%w", where, err)
		}
		if kind.Collective == nil {
			why := "neither a collective nor a training point"
			if kind.Measured != nil && kind.Model != nil {
				why = "a training point, not a collective; `busbar step` predicts those"
			}
			left = append(left, Left{ID: kind.ID, Reason: where + why, Points: 1})
			continue
		}
		var g line
		if err := json.Unmarshal(b, &g); err != nil {
			return nil, nil, fmt.Errorf("%s%w; %s", where, words.JSON(err), wanted)
		}
		g.Ranks = cmp.Or(g.Ranks, g.Nodes*g.PerNode)
		s := g.sweep()
		s.File, s.Line, s.OpFrom, s.LayoutFrom = name, num, "its line", "its line"
		list = append(list, s)
	}
	if err = sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line of more than %d bytes; expected one JSON object a line", maxLine)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, left, nil
}

// wanted is what a line should be.
const wanted = `expected one JSON object a line with id, collective, sizes_bytes and time_us`

// lineKind is what tells lines apart.
type lineKind struct {
	ID         string          `json:"id"`
	Collective json.RawMessage `json:"collective"`
	Measured   json.RawMessage `json:"measured"`
	Model      json.RawMessage `json:"model"`
}

func kindOf(b []byte) (kind lineKind, err error) {
	if b[0] != '{' {
		return kind, errors.New(wanted)
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return kind, fmt.Errorf("%w; %s", words.JSON(err), wanted)
	}
	if kind.ID == "" {
		err = errors.New("a line without an id; " + wanted)
	}
	return kind, err
}

// sweep is the line as a sweep. Where the source gives a bandwidth only, the time follows
// from it; a size without either is a point without a time.
func (g *line) sweep() *result.Sweep {
	s := &result.Sweep{
		Source: result.Measured, Dtype: g.Dtype, Ranks: g.Ranks, Nodes: g.Nodes, PerNode: g.PerNode, Transport: result.NCCL,
		Tool: g.Tool, Library: g.NCCL, Env: g.Env, ID: g.ID, Class: g.Class,
		Machine: &result.Machine{GPU: g.GPU, Joined: g.Joined, NICs: g.NICs, Gbps: g.Gbps, Fabric: g.Fabric},
		Published: &result.Published{
			Grade: g.Grade, Anomalous: g.Anomalous, Launch: g.Launch, Year: g.year(), Notes: g.Notes,
			Surplus: max(0, max(len(g.Time), len(g.AlgBW), len(g.BusBW))-len(g.Sizes)), Fault: g.fault(),
		},
	}
	var err error
	if s.Op, err = coll.ParseKind(g.Collective); err != nil {
		s.Problem = fmt.Sprintf("%.40q is none of the collectives that busbar list models", g.Collective)
	}
	for i, size := range g.Sizes {
		if !(size >= 0 && size < 1<<60) {
			size = 0
			s.Problem = cmp.Or(s.Problem, fmt.Sprintf("size %g; expected bytes", g.Sizes[i]))
		}
		p := result.Point{Size: unit.Bytes(size), Algo: g.Algo, Proto: g.Proto}
		us, rounding, problem := g.micros(i, callOf(s, p.Size))
		s.Problem = cmp.Or(s.Problem, problem)
		switch {
		case !isTime(us):
		case rounding > mostRounding:
			s.Published.Rounded++
		default:
			p.Out = result.Time(us)
		}
		s.Points = append(s.Points, p)
	}
	return s
}

// fault is what is wrong with the line's lists: one that is not as long as the sizes, or a value that is no time or
// rate; null is one that the source does not state.
func (g *line) fault() string {
	for _, f := range []struct {
		name, unit string
		values     []*float64
	}{{"time_us", "µs", g.Time}, {"algbw_GBps", "GB/s", g.AlgBW}, {"busbw_GBps", "GB/s", g.BusBW}} {
		if n := len(f.values); n > 0 && n != len(g.Sizes) {
			return fmt.Sprintf("%s has %d values and sizes_bytes %d; expected one for every size, null where there is none",
				f.name, n, len(g.Sizes))
		}
		for i, v := range f.values {
			if v == nil {
				continue
			}
			if f.name == "time_us" && !isTime(*v) || *v < 0 || *v > 1e12 {
				return fmt.Sprintf("%s of %s is %g; expected a time or rate in %s, or null", f.name, unit.Bytes(g.Sizes[i]), *v,
					f.unit)
			}
		}
	}
	return ""
}

// callOf is the call of one size; where the type is not stated it is nccl-tests' own. Types that
// nobody knows are found where the sweep is used.
func callOf(s *result.Sweep, size unit.Bytes) coll.Op {
	op := coll.Op{Kind: s.Op, Bytes: size, Type: coll.Float}
	if t, err := coll.ParseDtype(s.Dtype); err == nil {
		op.Type = t
	}
	return op
}

// isTime reports whether µs are a time that something can have taken.
func isTime(us float64) bool { return us >= 1e-3 && us <= 1e12 }

// at is a figure of a list that may be null or missing, false unless it is above 0.
func at(list []*float64, i int) (float64, bool) {
	if i >= len(list) || list[i] == nil || !(*list[i] > 0) || *list[i] > 1e12 {
		return 0, false
	}
	return *list[i], true
}

// mostRounding is how far a time may be off because it follows from a bandwidth with few digits;
// one that is farther off says nothing. nccl-tests prints 0.01 GB/s.
const mostRounding = 0.1

// micros is the time of one size in µs, and how far it may be off by rounding, as a share. problem says that fields
// which are there mean times that are farther apart than units and conventions of tools explain.
func (g *line) micros(i int, op coll.Op) (us, rounding float64, problem string) {
	least, most := math.Inf(1), 0.0
	take := func(t, off float64) {
		if !isTime(t) {
			return
		}
		if us == 0 {
			us, rounding = t, off
		}
		if off <= mostRounding {
			least, most = min(least, t), max(most, t)
		}
	}
	if t, ok := at(g.Time, i); ok {
		take(t, 0)
	}
	if gb, ok := at(g.AlgBW, i); ok {
		take(float64(op.AlgBytes(g.Ranks))/gb/1e3, half(gb))
	}
	if gb, ok := at(g.BusBW, i); ok {
		take(float64(op.AlgBytes(g.Ranks))*op.Kind.BusFactor(g.Ranks)/gb/1e3, half(gb))
	}
	if most > tooFar*least {
		problem = fmt.Sprintf("time_us, algbw_GBps and busbw_GBps contradict each other at %s: %.4g and %.4g µs", op.Bytes,
			least, most)
	}
	return us, rounding, problem
}

// tooFar is how far apart, as a factor, times of one measurement are that contradict each other.
const tooFar = 2

// half is half of the last digit of a bandwidth of two decimals, as a share.
func half(gb float64) float64 {
	if gb*100 != math.Round(gb*100) {
		return 0
	}
	return 0.005 / gb
}

// years are what a source says about when it measured, where no field does.
var years = lazyre.New(`\b(20[12][0-9])\b`)

// year is when it was measured, 0 where nothing says it. A year in the id, the fabric's words or the
// notes counts too.
func (g *line) year() int {
	for _, text := range []string{strings.Trim(string(g.Year), `"`), g.ID, g.Fabric, g.Notes} {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '_' || r == '/' }) {
			if m := years.FindString(word); m != "" {
				n, _ := strconv.Atoi(m)
				return n
			}
		}
	}
	return 0
}
