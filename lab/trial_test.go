//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// trial is a collective at some sizes, or steps of training: what ranks measure in a lab and what is predicted for
// them.
type trial struct {
	Kind      coll.Kind
	Word      string // the algorithm, with what is particular about it behind a colon
	Algo      string
	Params    schedule.Params
	Sizes     []unit.Bytes
	Transport engine.Transport
	Iters     int
	Step      *bench.StepPlan // without overlap, then with it
}

// newTrial reads an algorithm's word: interleaved changes node at every step and crossing the half of all ranks, leaves
// takes those halves for groups.
func newTrial(kind coll.Kind, word string, nodes, each int) *trial {
	t := &trial{Kind: kind, Word: word, Transport: engine.Auto, Iters: 8}
	name, particular, _ := strings.Cut(word, ":")
	t.Algo, t.Params.Ranks = name, nodes*each
	if name == "tree" { // a tree and its mirror, each with half of the data
		t.Params.Channels, t.Params.Pieces = 2, 8
	}
	rows, columns := nodes, each
	if particular == "crossing" || particular == "leaves" {
		rows, columns = 2, nodes*each/2
	}
	for r := range rows {
		var group []int
		for c := range columns {
			group = append(group, r*columns+c)
		}
		t.Params.Groups = append(t.Params.Groups, group)
	}
	if particular == "interleaved" || particular == "crossing" {
		for c := range columns {
			for r := range rows {
				t.Params.Order = append(t.Params.Order, r*columns+c)
			}
		}
	}
	return t
}

// beRank is the life of a rank: it joins the others and does the trial; rank 0 prints the median seconds of each size,
// of the quicker form, or of steps.
func beRank(ctx context.Context) error {
	var t trial
	if err := json.Unmarshal([]byte(os.Getenv("LAB_TRIAL")), &t); err != nil {
		return err
	}
	cfg, _, err := ranks.ConfigFromEnv(ranks.ThisProcess())
	if err != nil {
		return err
	}
	cfg.Transport, cfg.Timeout = t.Transport, 20*time.Second
	g, err := engine.Join(ctx, cfg)
	if err != nil {
		return err
	}
	defer g.Close()
	if t.Step != nil {
		return takeSteps(ctx, g, *t.Step)
	}
	plan := bench.Plan{
		Op: coll.Op{Kind: t.Kind, Type: coll.Float}, Sizes: t.Sizes, Algo: t.Algo, Params: t.Params,
		Transport: t.Transport, Warm: 2, Iters: t.Iters,
	}
	return bench.Run(ctx, g, plan, func(s *result.Sweep) error {
		best := math.Inf(1)
		for _, r := range s.Rows() {
			best = min(best, r.Time.Median.Micros())
		}
		_, err := fmt.Println(best / 1e6)
		return err
	})
}

func takeSteps(ctx context.Context, g *engine.Group, p bench.StepPlan) error {
	s, err := bench.NewStepper(g, p)
	if err != nil {
		return err
	}
	for _, overlap := range []bool{false, true} {
		x, err := s.Run(ctx, overlap, nil)
		if err != nil {
			return err
		}
		if x != nil { // rank 0's
			fmt.Println(x.Step)
		}
	}
	return nil
}

// measure runs the trial in every job at once; the times are the first job's.
func (t *trial) measure(ctx context.Context, l *Lab, jobs [][]Slot) ([]unit.Time, error) {
	work, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	one := Program{
		Path: self(), Args: []string{"lab.test", "rank"}, Env: append(os.Environ(), "LAB_TRIAL="+string(work)), Dir: "/",
	}
	out, errs := make([]bytes.Buffer, len(jobs)), make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, slots := range jobs {
		wg.Go(func() {
			code, err := (&Job{Lab: l, Slots: slots, Stdout: &out[i], Stderr: &out[i]}).Run(ctx, one)
			if err != nil || code != 0 {
				errs[i] = fmt.Errorf("exit code %d, %w: %s", code, err, &out[i])
			}
		})
	}
	wg.Wait()
	var times []unit.Time
	for line := range strings.Lines(out[0].String()) {
		_, word, _ := strings.Cut(strings.TrimSpace(line), "| ")
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%v: %s", errs, &out[0])
		}
		times = append(times, unit.Seconds(x))
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}

// predict plays the trial over a lab's wires with what messages cost here.
func (t *trial) predict(ctx context.Context, m *Sockets, p *Plan, jobs [][]Slot,
	slow map[int]float64,
) ([]unit.Time, error) {
	s, err := schedule.Build(t.Kind, t.Algo, t.Params)
	if err != nil {
		return nil, err
	}
	slots := slices.Concat(jobs...)
	w := p.Wire(slots)
	w.TCP, w.Slow = w.TCP || t.Transport == engine.TCP, slow
	if t.Step != nil {
		return t.predictSteps(ctx, m, w, s)
	}
	var times []unit.Time
	for _, size := range t.Sizes {
		var list []Played
		first := 0
		for _, job := range jobs {
			x := Played{Schedule: s, Op: coll.Op{Kind: t.Kind, Type: coll.Float, Bytes: size}}
			for range job {
				x.Ranks, first = append(x.Ranks, first), first+1
			}
			list = append(list, x)
		}
		out, _, err := m.Simulate(ctx, w, list[:1])
		if err == nil && len(list) > 1 {
			for j := range list { // jobs do not begin at the same moment
				list[j].Start = out[0] * unit.Time(j) / unit.Time(len(list))
			}
			out, _, err = m.Simulate(ctx, w, list)
		}
		if err != nil {
			return nil, err
		}
		times = append(times, out[0])
	}
	return times, nil
}

// predictSteps plays the buckets of a step: all of them behind the backward pass, or each when that has filled it.
func (t *trial) predictSteps(ctx context.Context, m *Sockets, w *Wiring, s *schedule.Schedule) ([]unit.Time, error) {
	how := engine.Bucketing{First: t.Step.First, Cap: t.Step.Cap}
	for _, g := range t.Step.Grads {
		how.Params = append(how.Params, g.Bytes)
	}
	whole := unit.Seconds(t.Step.Compute().Seconds())
	var times []unit.Time
	for _, overlap := range []bool{false, true} {
		var jobs []Played
		at := t.Step.Forward
		for _, params := range how.Plan() {
			j := Played{Schedule: s, Op: coll.Op{Kind: t.Kind, Type: coll.Float}, Start: whole}
			for r := range s.Ranks {
				j.Ranks = append(j.Ranks, r)
			}
			for _, i := range params {
				j.Op.Bytes += t.Step.Grads[i].Bytes
				at += t.Step.Grads[i].After
			}
			if overlap {
				j.Start = unit.Seconds(at.Seconds())
			}
			jobs = append(jobs, j)
		}
		ends, _, err := m.Once(ctx, w, jobs)
		if err != nil {
			return nil, err
		}
		times = append(times, max(whole, slices.Max(ends)))
	}
	return times, nil
}

// costs are what messages and bytes cost on this machine, by pairs of ranks in a lab whose nodes have no links inside.
// One message against two in a row tells what a message costs from what a call does, and data that is stored against
// data that is added up what adding costs.
func costs(t *testing.T, cores, iters int) *Sockets {
	t.Helper()
	l := up(t, preset(t, "baskerville", 2, Options{GPUs: 2, Inside: Memory}), false)
	pair := func(nodes int, over engine.Transport, kind coll.Kind, algo string, size unit.Bytes) unit.Time {
		x := newTrial(kind, algo, nodes, 2/nodes)
		x.Transport, x.Sizes, x.Iters = over, []unit.Bytes{size}, iters
		times, err := x.measure(t.Context(), l, [][]Slot{l.State.Plan.Slots(nodes, 2/nodes)})
		if err != nil {
			t.Fatal(err)
		}
		return times[0]
	}
	const small, large = 64, 4 * unit.MiB
	hop := func(nodes int) (latency, call unit.Time) {
		one := pair(nodes, engine.Auto, coll.SendRecv, "direct", small)
		two := pair(nodes, engine.Auto, coll.AllReduce, "ring", small)
		latency = min(max(two-one, two/4), one)
		return latency, one - latency
	}
	m := &Sockets{Cores: float64(cores)}
	m.Near.Latency, _ = hop(1)
	m.Net.Latency, m.Call = hop(2)
	m.Near.Reduce = pair(1, engine.Auto, coll.ReduceScatter, "ring", large).Seconds() / float64(large/2)
	m.Near.Copy = min(pair(1, engine.Auto, coll.SendRecv, "direct", large).Seconds()/float64(large), m.Near.Reduce)
	// both send and receive
	m.Net.Send = pair(1, engine.TCP, coll.SendRecv, "direct", large).Seconds() / float64(large) / 2
	m.Net.Copy, m.Net.Reduce = m.Net.Send, m.Net.Send+m.Near.Reduce-m.Near.Copy
	return m
}
