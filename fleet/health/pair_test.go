package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// sides of faults for tests: the factor that a fault leaves of a pair.
func out(i int, v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick(a == i, v) }
}

func in(i int, v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick(b == i, v) }
}

func host(i int, v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick(a == i || b == i, v) }
}

func pick(bad bool, v float64) float64 {
	if bad {
		return v
	}
	return 1
}

func leaf(l, size int, v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick((a/size == l) != (b/size == l), v) }
}

func couple(i, j int, v float64, both bool) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick(a == i && b == j || both && a == j && b == i, v) }
}

func join(list ...func(a, b, r, k int) float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 {
		v := 1.0
		for _, f := range list {
			v = min(v, f(a, b, r, k))
		}
		return v
	}
}

// TestTwoSweeps: a NIC at a half is named within two sweeps, in a fleet with a past and in a
// new one, and nothing else is.
func TestTwoSweeps(t *testing.T) {
	const seeds = 50
	for _, c := range []struct {
		name  string
		fault func(a, b, r, k int) float64
		id    string
		past  int
	}{
		{"sending", out(3, 0.5), "slow-out:node3", 20},
		{"receiving", in(3, 0.5), "slow-in:node3", 20},
		{"both", host(3, 0.5), "slow-host:node3", 20},
		{"both, new", host(3, 0.5), "slow-host:node3", 0},
		{"sending, new", out(3, 0.5), "slow-out:node3", 0},
	} {
		for _, size := range []int{0, 4} {
			named, alone, drained := 0, 0, 0
			for seed := range uint64(seeds) {
				f := shared(8, size, seed)
				f.run(c.past)
				f.fault = c.fault
				list := f.run(2)
				if slices.Contains(ids(list), c.id) {
					named++
					drained += len(Drain(list))
					if len(list) == 1 {
						alone++
					}
				} else if seed < 5 {
					t.Logf("%s, leaf of %d, seed %d: %v", c.name, size, seed, ids(list))
				}
			}
			t.Logf("%s at 50%%, leaves of %d: named within two sweeps %d of %d times, alone %d, to be drained %d", c.name, size,
				named, seeds, alone, drained)
			if named < seeds*97/100 || alone < seeds*94/100 {
				t.Errorf("%s, leaves of %d: named %d, alone %d of %d", c.name, size, named, alone, seeds)
			}
		}
	}
}

// TestFaults names every sort of fault, and several at once.
func TestFaults(t *testing.T) {
	seeds := often(20)
	for _, c := range []struct {
		name    string
		n, leaf int
		rails   []string
		fault   func(a, b, r, k int) float64
		want    []string
		least   int // of 20; 0 is 18
	}{
		{"a pair", 8, 0, nil, couple(1, 6, 0.5, true), []string{"slow-pair:node1-node6"}, 0},
		{"a direction", 8, 4, nil, couple(1, 6, 0.5, false), []string{"one-way:node1>node6"}, 0},
		{"a mild host", 8, 0, nil, host(2, 0.75), []string{"slow-host:node2"}, 0},
		{"two hosts", 8, 0, nil, join(host(2, 0.5), host(5, 0.4)), []string{"slow-host:node2", "slow-host:node5"}, 0},
		{
			"three hosts", 8, 4, nil, join(host(2, 0.5), host(5, 0.5), host(7, 0.5)),
			[]string{"slow-host:node2", "slow-host:node5", "slow-host:node7"},
			15,
		},
		{"a sender and a receiver", 8, 4, nil, join(out(2, 0.5), in(5, 0.5)), []string{"slow-in:node5", "slow-out:node2"}, 0},
		{"a leaf", 16, 4, nil, leaf(1, 4, 0.5), []string{"slow-leaf:leaf1"}, 0},
		{"a leaf of three", 12, 4, nil, leaf(1, 4, 0.5), []string{"slow-leaf:leaf1"}, 0},
		{
			"a leaf and a host", 16, 4, nil, join(leaf(1, 4, 0.6), host(13, 0.4)),
			[]string{"slow-host:node13", "slow-leaf:leaf1"},
			0,
		},
		{
			"a host and a pair", 8, 0, nil, join(host(2, 0.5), couple(4, 5, 0.4, true)),
			[]string{"slow-host:node2", "slow-pair:node4-node5"},
			0,
		},
		{"between two leaves", 8, 4, nil, leaf(1, 4, 0.5), []string{"slow-path:leaf0-leaf1"}, 0},
		{
			"out of a leaf", 16, 4, nil, func(a, b, r, k int) float64 { return pick(a/4 == 2 && b/4 != 2, 0.5) },
			[]string{"slow-leaf-out:leaf2"},
			0,
		},
		{
			"a path of four leaves", 16, 4, nil,
			func(a, b, r, k int) float64 { return pick(a/4 == 2 && b/4 == 3 || a/4 == 3 && b/4 == 2, 0.5) },
			[]string{"slow-path:leaf2-leaf3"},
			0,
		},
		{
			"one of four uplinks", 16, 4, nil,
			func(a, b, r, k int) float64 { return pick((a/4 == 2) != (b/4 == 2) && (a*7+b*13)%4 == 0, 0.5) },
			[]string{"slow-leaf:leaf2"},
			0,
		},
		{
			"a NIC of four", 8, 4,
			[]string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"},
			func(a, b, r, k int) float64 { return pick((a == 3 || b == 3) && r == 2, 0.5) },
			[]string{"slow-nic:node3/mlx5_2"},
			0,
		},
		{
			"a rail", 8, 4,
			[]string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"},
			func(a, b, r, k int) float64 { return pick(r == 1, 0.6) },
			[]string{"slow-rail:mlx5_1"},
			0,
		},
	} {
		right := 0
		for seed := range uint64(seeds) {
			f := shared(c.n, c.leaf, seed)
			f.rails = c.rails
			f.run(15)
			f.fault = c.fault
			list := f.run(6)
			got := ids(list)
			slices.Sort(got)
			if slices.Equal(got, c.want) {
				right++
			} else if right > int(seed)-3 {
				t.Logf("%s, seed %d: %v", c.name, seed, got)
			}
		}
		t.Logf("%s: right %d of %d", c.name, right, seeds)
		if right < cmp.Or(c.least, 18)*seeds/20 {
			t.Errorf("%s: right %d of %d", c.name, right, seeds)
		}
	}
}

// TestFalseAlarms counts findings of healthy fleets, as measured on a shared machine and in
// worse weather.
func TestFalseAlarms(t *testing.T) {
	for _, c := range []struct {
		name          string
		n, leaf, runs int
		weather       func(f *fleet)
		most          int // of 50 sweeps times runs
	}{
		{"shared", 8, 0, 40, nil, 0},
		{"shared", 8, 4, 40, nil, 0},
		{"shared", 24, 8, 4, nil, 0},
		{"noise 10%", 8, 4, 12, func(f *fleet) { f.noise = 0.1 }, 0},
		{"6% strays", 8, 4, 12, func(f *fleet) { f.stray = 0.06 }, 0},
		{"40% busy sweeps", 8, 4, 12, func(f *fleet) { f.busy = 0.4 }, 0},
		{"busy spells in 30% of sweeps", 8, 4, 12, func(f *fleet) { f.spells = 0.3 }, 0},
		{"pairs differ by 5%", 8, 4, 12, func(f *fleet) { f.uneven = 0.05 }, 0},
		{"pairs differ by 20%", 8, 0, 12, func(f *fleet) { f.uneven = 0.2 }, 0},
		{"nodes upset in 2% of sweeps", 8, 4, 12, func(f *fleet) { f.upset = 0.02 }, 10},
	} {
		alarms, raised := 0, map[string]bool{}
		runs := often(c.runs)
		for seed := range uint64(runs) {
			f := shared(c.n, c.leaf, 1000+seed)
			if c.weather != nil {
				c.weather(f)
			}
			for range 50 {
				list := f.h.Findings(f.sweep())
				if len(list) > 0 {
					alarms++
					raised[fmt.Sprint(seed, ids(list))] = true
				}
			}
		}
		t.Logf("%s: %d nodes, leaves of %d: %d of %d healthy sweeps with a finding (%d findings)", c.name, c.n, c.leaf,
			alarms, 50*runs, len(raised))
		if alarms > c.most {
			t.Errorf("%d false alarms: %v", alarms, slices.Sorted(maps.Keys(raised)))
		}
	}
}
