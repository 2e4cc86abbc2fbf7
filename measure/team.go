package measure

import (
	"context"
	"time"

	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/result/pairs"
)

// Team measures every pair of a team by NCCL's sends and receives, and all again where something stands out, but for
// once. tries is how often, and wrong how many bytes arrived wrong, where that is checked.
func Team(ctx context.Context, team device.Team, p bench.PairPlan, check, once bool,
	show func(string),
) (t *pairs.Table, tries int, wrong int64, err error) {
	s := &Sweep{Show: show, All: true, Once: once}
	for _, w := range team {
		s.Hosts = append(s.Hosts, w.Hello.Host)
	}
	s.Names = rankNames(s.Hosts)
	s.Turn = func(ctx context.Context, list [][2]int, _ time.Duration) ([]pairs.Measure, []time.Duration, error) {
		cells, n, err := gpu.Turn(ctx, team, p, check, list)
		wrong += n
		return cells, make([]time.Duration, len(list)), err
	}
	t, err = s.Measure(ctx, allRounds(len(team), p.Alone))
	return t, s.Passes, wrong, err
}
