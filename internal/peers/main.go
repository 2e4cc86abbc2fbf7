//go:build unix

// Command peers holds busbar's collectives against Gloo, Open MPI and MPICH on this machine, over
// TCP, in shared memory and over a slow network, and writes what came out as tables.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"busbar.dev/internal/test/netns"
)

func main() {
	short := flag.Bool("short", false, "a quick look: few sizes, one round")
	only := flag.String("only", "tcp,shm,ops,shaped", "which parts, with commas")
	rounds := flag.Int("rounds", 3, "how often all sides take their turn")
	ranks := flag.String("ranks", "2,4,8", "numbers of ranks")
	again := flag.Int("again", 8, "how often cells that miss a goal, or nearly so, are measured again")
	one := flag.String("cell", "", "one cell alone: network, operation, ranks and size, such as tcp,all_reduce,8,32K")
	algos := flag.String("algos", "", "algorithms of ours to measure besides, such as ring,chain:4")
	out := flag.String("o", "", "a file for the tables, besides standard output")
	flag.Parse()
	if err := run(&book{samples: map[key][]sample{}, again: *again, algos: *algos}, *one, *short, *only, *ranks, *rounds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(b *book, one string, short bool, only, ranks string, rounds int, out string) error {
	if one != "" {
		var err error
		if b.only, only, err = readCell(one); err != nil {
			return err
		}
		ranks = fmt.Sprint(b.only.ranks)
	}
	if err := install(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "busbar-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b.dir, b.machine = dir, occupy()
	defer b.machine.leave()
	if short {
		rounds, b.again = 1, 0
	}
	var counts []int
	for _, word := range strings.Split(ranks, ",") {
		var n int
		if _, err := fmt.Sscan(word, &n); err != nil || n < 2 || n > 64 {
			return fmt.Errorf("-ranks %q: expected numbers from 2 to 64", ranks)
		}
		counts = append(counts, n)
	}
	began := time.Now()
	for _, part := range strings.Split(only, ",") {
		begin := time.Now()
		if err := b.part(ctx, part, counts, rounds, short); err != nil {
			return err
		}
		say("%s took %.0f s", part, time.Since(begin).Seconds())
	}
	var text bytes.Buffer
	missed, goals := b.report(&text, tables(), began)
	os.Stdout.Write(text.Bytes())
	say("%d of %d goals are missed", missed, goals)
	if out == "" {
		return ctx.Err()
	}
	return errors.Join(ctx.Err(), os.WriteFile(out, text.Bytes(), 0o644))
}

// part measures one part.
func (b *book) part(ctx context.Context, name string, ranks []int, rounds int, short bool) error {
	switch name {
	case "tcp", "shm":
		b.sizes(ctx, name, ranks, rounds, short)
	case "ops":
		b.collectives(ctx, rounds, short)
	case "shaped":
		return b.shaped(ctx, rounds, short)
	default:
		return fmt.Errorf("-only %s: expected tcp, shm, ops or shaped", name)
	}
	return nil
}

// sizes is an all-reduce from 8 bytes to 256 MiB.
func (b *book) sizes(ctx context.Context, over string, ranks []int, rounds int, short bool) {
	list := []trial{
		{sizes: []int64{8, 64, 512, 4 << 10, 32 << 10}, iters: 400, warm: 50, budget: 0.15},
		{sizes: []int64{256 << 10, 1 << 20, 4 << 20}, iters: 20, warm: 2, budget: 0.25},
		{sizes: []int64{16 << 20, 64 << 20}, iters: 3, warm: 1, budget: 0.5},
		{sizes: []int64{256 << 20}, iters: 2, warm: 1, budget: 0.5},
	}
	if short {
		list = []trial{
			{sizes: []int64{8, 512, 32 << 10}, iters: 200, warm: 50, budget: 0.1},
			{sizes: []int64{256 << 10, 2 << 20, 16 << 20}, iters: 5, warm: 2, budget: 0.2},
		}
	}
	if over == "shm" {
		list[0].iters, list[0].warm = 5*list[0].iters, 500 // microseconds each
	}
	for round := range rounds {
		for _, n := range ranks {
			for i, t := range list {
				if i == 3 && b.only == nil && round > 0 && round == rounds-1 {
					continue // the longest, once less
				}
				t.section, t.over, t.op, t.ranks = over, over, "all_reduce", n
				b.play(ctx, &t, round)
				if over == "tcp" && b.narrowed(&t) {
					b.bare(ctx, over, n, min(t.iters, 4), slices.DeleteFunc(slices.Clone(t.sizes), func(s int64) bool { return s < 16<<20 }), round)
				}
			}
		}
		say("%s: round %d of %d", over, round+1, rounds)
	}
	b.closer(ctx, rounds)
}

var others = []string{"all_gather", "reduce_scatter", "broadcast", "all_to_all"}

// collectives is the other operations at a few sizes, on four ranks.
func (b *book) collectives(ctx context.Context, rounds int, short bool) {
	for round := range rounds {
		for _, over := range []string{"tcp", "shm"} {
			for _, op := range others {
				for _, t := range []trial{
					{sizes: []int64{1 << 10, 32 << 10}, iters: 300, warm: 20, budget: 0.1},
					{sizes: []int64{1 << 20, 16 << 20}, iters: 20, warm: 4, budget: 0.3},
				} {
					t.section, t.over, t.op, t.ranks = "ops "+over, over, op, 4
					if over == "shm" && t.sizes[0] == 1<<10 {
						t.iters, t.warm = 2000, 500 // microseconds each: 300 are over within one turn of the scheduler
					}
					b.play(ctx, &t, round)
				}
			}
		}
		say("other collectives: round %d of %d", round+1, rounds)
	}
	b.closer(ctx, rounds)
}

// Layouts of four ranks, one network card a host.
const (
	flat  = "4x1"
	mixed = "2x2"
)

// shaped is an all-reduce between hosts with 1 Gb/s each.
func (b *book) shaped(ctx context.Context, rounds int, short bool) error {
	x, err := netns.New(4, "1gbit")
	if errors.Is(err, netns.ErrNotHere) {
		say("the shaped network is left out: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer x.Close()
	if err := os.WriteFile(filepath.Join(b.dir, "agent"), []byte(x.Agent()), 0o755); err != nil {
		return err
	}
	list := []trial{
		// Cards let 256 KiB pass at once after a pause: what is run to warm up uses that up, so that all
		// sides begin without that allowance.
		{sizes: []int64{1 << 10, 32 << 10}, iters: 300, warm: 25, budget: 0.3},
		{sizes: []int64{1 << 20}, iters: 30, warm: 2, budget: 0.6},
		{sizes: []int64{16 << 20, 64 << 20}, iters: 2, warm: 1, budget: 1},
	}
	if short {
		list = []trial{{sizes: []int64{1 << 20, 16 << 20}, iters: 3, warm: 1, budget: 0.5}}
	}
	if b.only == nil {
		rounds = min(rounds, 2)
	}
	for round := range rounds {
		for layout, per := range map[string]int{flat: 1, mixed: 2} {
			for _, t := range list {
				t.section, t.over, t.op, t.ranks, t.hosts, t.per = layout, "tcp", "all_reduce", 4, x, per
				b.play(ctx, &t, round)
			}
		}
		say("shaped: round %d of %d", round+1, rounds)
	}
	b.closer(ctx, rounds)
	return nil
}

// nominal is what a card of 1 Gb/s carries, in bytes a microsecond.
const nominal = 125.0

// tables are those of the report.
func tables() []table {
	all := []string{"Open MPI", "MPICH", "Gloo"}
	list := []table{
		{
			section: "tcp", op: "all_reduce", sides: append(slices.Clone(all), plain), reach: 0.85,
			goal: goal{"all_reduce over TCP (loopback)", "Goals: faster than every peer; from 16 MiB on at least 85% of what plain sockets carry along the same ring, without adding anything up.", tcpGoal},
		},
		{
			section: "shm", op: "all_reduce", sides: all[:2],
			goal: goal{"all_reduce in shared memory", "Goals: faster than every peer, and than Open MPI by 3× from 256 KiB on. Gloo has no shared memory.", shmGoal},
		},
	}
	for _, over := range []string{"tcp", "shm"} {
		for _, op := range others {
			sides := all
			if over == "shm" {
				sides = all[:2]
			}
			list = append(list, table{section: "ops " + over, op: op, sides: sides, goal: goal{op + " over " + over, "Goal: faster than every peer.", tcpGoal}})
		}
	}
	for _, x := range []struct {
		layout, text string
		share        float64 // of the vector that every card must carry each way
	}{
		{flat, "Four hosts of one rank, 1 Gb/s each. No algorithm moves less than 1.5 times the vector through every card", 1.5},
		{mixed, "Two hosts of two ranks, 1 Gb/s each. No algorithm moves less than the vector once through every card", 1},
	} {
		list = append(list, table{
			section: x.layout, op: "all_reduce", sides: all, reach: 0.93,
			bound: func(_ int, size int64) float64 { return x.share * float64(size) / nominal },
			goal: goal{
				"all_reduce over a slow network, " + x.layout,
				x.text + "; headers take 4.4% of the rate. Goals: faster than every peer; from 16 MiB on at least 93% of that bound at the nominal rate.", tcpGoal,
			},
		})
	}
	return list
}
