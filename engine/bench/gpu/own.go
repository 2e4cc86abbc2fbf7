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
		op := coll.Op{Kind: kind, Bytes: size, Type: t.Dtype}
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
	op := coll.Op{Kind: kind, Bytes: largest, Type: t.Dtype}
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
		s.Redop = coll.Sum.String()
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
	least, most, sum := math.Inf(1), 0.0, 0.0
	for r, a := range answers {
		if a.Timing == nil || !(a.Timing.Micros > 0) {
			return nil, errors.New("busbar-gpu answered without a time")
		}
		us := a.Timing.Micros
		sum += us
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
	out.Time.Mean, out.Spread = unit.Micros(sum/float64(len(answers))), unit.Micros(most-least)
	return out, nil
}

// Turn measures pairs that have no rank in common, at the same time: each way alone, by large messages and by small
// ones, and both ways at once. wrong is how many bytes arrived wrong, where that is checked.
func Turn(ctx context.Context, team device.Team, p bench.PairPlan, check bool,
	list [][2]int,
) (cells []pairs.Measure, wrong int64, err error) {
	// exchange has the pairs send to the second, to the first, or both, and gives the time of each in µs.
	exchange := func(size unit.Bytes, ways ...int) []float64 {
		took, requests := make([]float64, len(list)), map[int]device.Request{}
		if err != nil {
			return took
		}
		for _, x := range list {
			for _, way := range ways {
				from, to := requests[x[way]], requests[x[1-way]]
				from.Send, to.Receive = new(x[1-way]), new(x[way])
				requests[x[way]], requests[x[1-way]] = from, to
			}
		}
		var answers []device.Answer
		answers, err = team.Ask(ctx, func(rank int) (device.Request, bool) {
			q, ok := requests[rank]
			q.Do, q.Bytes, q.Warm, q.Iters, q.Check = device.Pair, int64(size), p.Warm, p.Iters, check
			return q, ok
		})
		for rank := range requests {
			switch {
			case err != nil:
				return took
			case answers[rank].Timing == nil:
				err = errors.New("busbar-gpu answered without a time")
			case answers[rank].Timing.Wrong != nil:
				wrong += *answers[rank].Timing.Wrong
			}
		}
		for i, x := range list {
			if err == nil {
				took[i] = max(answers[x[0]].Timing.Micros, answers[x[1]].Timing.Micros)
			}
		}
		return took
	}
	cells = make([]pairs.Measure, 2*len(list))
	for way := range 2 {
		large, small := exchange(p.Large, way), exchange(p.Small, way)
		for i, x := range list {
			cells[2*i+way] = pairs.Measure{
				From: x[way], To: x[1-way], Rate: rateOf(p.Large, large[i]), Latency: unit.Micros(small[i]),
			}
		}
	}
	both := exchange(p.Large, 0, 1)
	for i := range cells {
		cells[i].Both = rateOf(p.Large, both[i/2])
	}
	return cells, wrong, err
}

func rateOf(size unit.Bytes, us float64) unit.Rate {
	if us <= 0 {
		return 0
	}
	return unit.Rate(float64(size) / us * 1e6)
}
