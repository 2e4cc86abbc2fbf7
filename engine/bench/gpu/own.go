package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/device"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Own measures NCCL with workers of busbar-gpu, as nccl-tests does: the same sizes, iterations and averages, without
// MPI.
type Own struct {
	Dtype   coll.Dtype
	Redop   coll.Redop
	Warm    int
	Iters   int
	Check   bool
	Timeout time.Duration // of one size
	Cluster string        // kept with the results
	Setting Setting       // that the workers were started with
}

// longest is what the runs of one size may take together before there are fewer of them.
const longest = 8 * time.Second

// Sweep measures one collective; done gets every size.
func (t *Own) Sweep(ctx context.Context, team device.Team, kind coll.Kind, sizes []unit.Bytes,
	done func(unit.Bytes),
) (*result.Sweep, error) {
	s := t.describe(team, kind)
	if len(sizes) == 0 {
		return s, nil
	}
	room := slices.Max(sizes)
	if err := t.warmUp(ctx, team, kind, room); err != nil {
		return s, err
	}
	for _, size := range sizes {
		if done != nil {
			done(size)
		}
		op := coll.Op{Kind: kind, Bytes: size, Type: t.Dtype, Reduce: t.Redop}
		if kind != coll.Barrier && op.Count(len(team)) == 0 {
			continue // nothing is left of it in whole elements
		}
		p := result.Point{Size: op.Size(len(team)), Algo: t.Setting.Algo, Channels: t.Setting.Channels}
		if t.Setting.Proto != "auto" {
			p.Proto = t.Setting.Proto
		}
		var err error
		if p.Out, err = t.point(ctx, team, op, room, false); err != nil {
			return s, fmt.Errorf("%s of %v: %w", kind, size, err)
		}
		if kind.InPlace() {
			if p.In, err = t.point(ctx, team, op, room, true); err != nil {
				return s, fmt.Errorf("%s of %v in place: %w", kind, size, err)
			}
		}
		s.Points = append(s.Points, p)
	}
	return s, nil
}

// warmUp runs the largest size before the first is measured, as nccl-tests does: connections are made, their windows
// are open and buffers are there. Without it the first row of a sweep is slower than it is anywhere else.
func (t *Own) warmUp(ctx context.Context, team device.Team, kind coll.Kind, largest unit.Bytes) error {
	if t.Warm == 0 || len(team) < 2 {
		return nil
	}
	op := coll.Op{Kind: kind, Bytes: largest, Type: t.Dtype, Reduce: t.Redop}
	if kind != coll.Barrier && op.Count(len(team)) == 0 {
		return nil
	}
	warm := *t
	warm.Iters, warm.Check = 1, false
	if _, err := warm.point(ctx, team, op, largest, false); err != nil {
		return fmt.Errorf("%s of %v, to warm up: %w", kind, op.Bytes, err)
	}
	return nil
}

// describe is a sweep without points.
func (t *Own) describe(team device.Team, kind coll.Kind) *result.Sweep {
	s := &result.Sweep{
		Source: result.Measured, Op: kind, Dtype: t.Dtype.String(), Ranks: len(team), Transport: result.NCCL,
		Env: t.Setting.Env(), Cluster: t.Cluster,
		Tool: team[0].Hello.Program, Library: team[0].Device.NCCL, Session: bench.NewSession(),
		When:    time.Now().UTC().Truncate(time.Second),
		Machine: &result.Machine{OS: "linux", GPU: team[0].Device.Name}, OpFrom: "busbar-gpu", LayoutFrom: "busbar-gpu",
	}
	if kind.Reduces() {
		s.Redop = t.Redop.String()
	}
	per := map[string]int{}
	var hosts []string
	for _, w := range team {
		if per[w.Hello.Host]++; per[w.Hello.Host] == 1 {
			hosts = append(hosts, w.Hello.Host)
		}
	}
	s.Nodes, s.PerNode = result.Evenly(per, len(team))
	s.Hosts = cluster.FormatHosts(hosts)
	return s
}

// point measures one size, in or out of place, in memory for the largest of its sweep.
func (t *Own) point(ctx context.Context, team device.Team, op coll.Op, room unit.Bytes,
	inPlace bool,
) (*result.Timing, error) {
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Timeout,
			fmt.Errorf("no end after %v (--timeout): a rank or its GPU hangs", t.Timeout))
		defer cancel()
	}
	q := device.Request{
		Do: device.Collective, Op: op.Kind, Bytes: int64(op.Bytes), Dtype: op.Type.String(), Redop: op.Reduce.String(),
		Root: op.Root, InPlace: inPlace, Warm: t.Warm, Iters: 1, Room: int64(room),
	}
	first, err := team.All(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	q.Warm, q.Iters, q.Check = 1, t.Iters, t.Check
	if us := first[0].Timing.Micros; us > 0 {
		q.Iters = max(2, min(t.Iters, int(longest.Seconds()*1e6/us)))
	}
	answers, err := team.All(ctx, q, nil)
	if err != nil {
		return nil, err
	}
	return average(answers, q.Iters)
}

// average is the mean of the ranks' times, as nccl-tests has it, and who took longest.
func average(answers []device.Answer, iters int) (*result.Timing, error) {
	out := &result.Timing{Runs: iters}
	least, most := math.Inf(1), 0.0
	for r, a := range answers {
		if a.Timing == nil || !(a.Timing.Micros > 0) {
			return nil, errors.New("busbar-gpu answered without a time")
		}
		us := a.Timing.Micros
		out.Time.Mean += us / float64(len(answers))
		if us > most {
			most, out.Slowest = us, new(r)
		}
		least = min(least, us)
		if a.Timing.Wrong != nil {
			if out.Wrong == nil {
				out.Wrong = new(int64)
			}
			*out.Wrong += *a.Timing.Wrong
		}
	}
	out.Spread = most - least
	return out, nil
}

// Pairs measures every pair of ranks by sends and receives, in rounds in which nobody is in two; done gets every round.
func Pairs(ctx context.Context, team device.Team, p bench.PairPlan, check bool,
	done func(round int),
) (*pairs.Table, int64, error) {
	t := &pairs.Table{Names: names(team)}
	for _, w := range team {
		t.Hosts = append(t.Hosts, w.Hello.Host)
	}
	wrong := int64(0)
	for k, round := range pairs.Rounds(len(team)) {
		if done != nil {
			done(k)
		}
		turns := [][][2]int{round}
		if p.Alone {
			turns = nil
			for _, pair := range round {
				turns = append(turns, [][2]int{pair})
			}
		}
		for _, turn := range turns {
			n, err := measureTurn(ctx, team, p, check, turn, t)
			if wrong += n; err != nil {
				return t, wrong, err
			}
		}
	}
	return t, wrong, nil
}

// measureTurn measures pairs that have no rank in common, at the same time: each way alone, both ways, and a small
// message.
func measureTurn(ctx context.Context, team device.Team, p bench.PairPlan, check bool, turn [][2]int,
	t *pairs.Table,
) (wrong int64, err error) {
	cells := map[[2]int]*pairs.Measure{}
	for _, x := range turn {
		cells[x] = &pairs.Measure{From: x[0], To: x[1]}
		cells[[2]int{x[1], x[0]}] = &pairs.Measure{From: x[1], To: x[0]}
	}
	ask := func(size unit.Bytes, iters int, ways ...bool) (map[[2]int]float64, error) {
		requests := map[int]device.Request{}
		for _, x := range turn {
			for _, back := range ways {
				from, to := x[0], x[1]
				if back {
					from, to = to, from
				}
				a, b := requests[from], requests[to]
				a.Send, b.Receive = new(to), new(from)
				requests[from], requests[to] = a, b
			}
		}
		answers, err := team.Ask(ctx, func(rank int) (device.Request, bool) {
			q, ok := requests[rank]
			q.Do, q.Bytes, q.Warm, q.Iters, q.Check = device.Pair, int64(size), p.Warm, iters, check
			return q, ok
		})
		if err != nil {
			return nil, err
		}
		times := map[[2]int]float64{}
		for _, x := range turn {
			a, b := answers[x[0]].Timing, answers[x[1]].Timing
			if a == nil || b == nil {
				return nil, errors.New("busbar-gpu answered without a time")
			}
			for _, w := range []*int64{a.Wrong, b.Wrong} {
				if w != nil {
					wrong += *w
				}
			}
			times[x] = max(a.Micros, b.Micros)
		}
		return times, nil
	}
	for _, back := range []bool{false, true} {
		rates, err := ask(p.Large, p.Iters, back)
		if err != nil {
			return wrong, err
		}
		delays, err := ask(p.Small, p.Iters, back)
		if err != nil {
			return wrong, err
		}
		for _, x := range turn {
			cell := cells[x]
			if back {
				cell = cells[[2]int{x[1], x[0]}]
			}
			cell.Rate, cell.Latency = rateOf(p.Large, rates[x]), unit.Micros(delays[x])
		}
	}
	both, err := ask(p.Large, p.Iters, false, true)
	if err != nil {
		return wrong, err
	}
	for _, x := range turn {
		for _, c := range [][2]int{x, {x[1], x[0]}} {
			cells[c].Both = rateOf(p.Large, both[x])
			t.Cells = append(t.Cells, *cells[c])
		}
	}
	return wrong, nil
}

func rateOf(size unit.Bytes, us float64) unit.Rate {
	if us <= 0 {
		return 0
	}
	return unit.Rate(float64(size) / us * 1e6)
}

// names are the ranks' hosts, with the GPU where a host has several.
func names(team device.Team) []string {
	count := map[string]int{}
	for _, w := range team {
		count[w.Hello.Host]++
	}
	list := make([]string, len(team))
	for i, w := range team {
		if list[i] = w.Hello.Host; count[w.Hello.Host] > 1 {
			list[i] = fmt.Sprintf("%s:%d", w.Hello.Host, i)
		}
	}
	return list
}
