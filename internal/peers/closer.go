//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// near is how close to its goal a ratio is looked at again.
const near = 1.05

// cell is one place in the tables, the only one that is measured where somebody asks for it.
type cell struct {
	section, op string
	ranks       int
	size        int64
}

// readCell reads "tcp,all_reduce,8,32K": a network (tcp, shm, 4x1 or 2x2), an operation, a number
// of ranks and a size. It also tells the part that has it.
func readCell(text string) (c *cell, part string, err error) {
	words := strings.Split(text, ",")
	if len(words) != 4 {
		return nil, "", fmt.Errorf("-cell %q: expected a network, an operation, ranks and a size, such as tcp,all_reduce,8,32K", text)
	}
	c = &cell{section: words[0], op: words[1]}
	var size unit.Bytes
	if c.ranks, err = strconv.Atoi(words[2]); err == nil {
		size, err = unit.ParseBytes(words[3])
	}
	if err != nil {
		return nil, "", fmt.Errorf("-cell %q: %w", text, err)
	}
	c.size, part = int64(size), words[0]
	switch {
	case part == flat || part == mixed:
		part = "shaped"
	case c.op != "all_reduce":
		c.section, part = "ops "+words[0], "ops"
	}
	return c, part, nil
}

// narrowed keeps of a trial what was asked for; false where that is nothing.
func (b *book) narrowed(t *trial) bool {
	if c := b.only; c != nil {
		if t.section != c.section || t.op != c.op || t.ranks != c.ranks || !slices.Contains(t.sizes, c.size) {
			return false
		}
		t.sizes = []int64{c.size}
	}
	return true
}

// closer measures again, by themselves, the cells of a part that miss a goal or come close, with
// the sides that matter.
func (b *book) closer(ctx context.Context, rounds int) {
	for _, t := range b.played {
		for _, size := range t.sizes {
			i := slices.IndexFunc(tables(), func(x table) bool { return x.section == t.section && x.op == t.op })
			tight := b.tight(tables()[i], t.ranks, size)
			if len(tight) == 0 || ctx.Err() != nil {
				continue
			}
			one := t
			one.sizes = []int64{size}
			for k := range b.again {
				for _, s := range sides(b.algos) {
					name, _, _ := strings.Cut(s.name, "/")
					if s.takes(&one) && !(name == spinner && one.crowded()) && (name == us || slices.Contains(tight, name)) {
						b.one(ctx, &one, s, rounds+k)
					}
				}
				if slices.Contains(tight, plain) {
					b.bare(ctx, one.section, one.ranks, min(one.iters, 4), one.sizes, rounds+k)
				}
			}
			for _, s := range tight {
				b.close = append(b.close, key{t.section, t.op, t.ranks, size, s})
			}
		}
	}
	b.played = nil
}

// tight are the sides of a cell whose goal is missed or nearly so.
func (b *book) tight(t table, ranks int, size int64) (list []string) {
	ours, ok := b.best(key{t.section, t.op, ranks, size, us})
	for _, s := range t.sides {
		theirs, found := b.best(key{t.section, t.op, ranks, size, s})
		if ok && found && theirs/ours < near*t.least(s, size) {
			list = append(list, s)
		}
	}
	return list
}

// least is the ratio that a cell must reach.
func (t *table) least(side string, size int64) float64 {
	switch {
	case side != plain:
		return t.goal.least(side, size)
	case size >= 16<<20:
		return t.reach
	}
	return 0
}

// spread tells how far the rounds of those cells lie apart.
func (b *book) spread(w io.Writer) {
	if len(b.close) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## How far rounds lie apart\n\n"+
		"Cells that missed a goal or came within %.0f%% of it were measured %d times more, by themselves. A ratio is that of two runs "+
		"that followed each other; the tables have the ratio of the medians of all rounds.\n\n"+
		"| cell | ranks | size | against | median | middle half | all rounds | at the goal |\n|---|---:|---:|---|---:|---:|---:|---:|\n", 100*(near-1), b.again)
	for _, k := range b.close {
		list := b.ratios(k)
		if len(list) == 0 {
			continue
		}
		i := slices.IndexFunc(tables(), func(x table) bool { return x.section == k.section && x.op == k.op })
		goal, held := tables()[i].least(k.side, k.size), 0
		for _, x := range list {
			if x >= goal {
				held++
			}
		}
		slices.Sort(list)
		n := len(list)
		fmt.Fprintf(w, "| %s, %s | %d | %v | %s | %.2f | %.2f–%.2f | %.2f–%.2f | %d of %d |\n", k.op, strings.TrimPrefix(k.section, "ops "), k.ranks, unit.Bytes(k.size), k.side,
			stats.Median(list), list[n/4], list[n-1-n/4], list[0], list[n-1], held, n)
	}
}

// ratios are a peer's times over ours, round by round; of a peer with several algorithms that of
// the fastest. Where three rounds were quiet, the others do not count.
func (b *book) ratios(k key) (list []float64) {
	type round struct{ ours, theirs, others float64 }
	rounds := map[int]round{}
	for name, all := range b.samples {
		side, _, _ := strings.Cut(name.side, "/")
		ours := name.side == us
		if name.section != k.section || name.op != k.op || name.ranks != k.ranks || name.size != k.size || !ours && side != k.side {
			continue
		}
		for _, s := range all {
			r := rounds[s.round]
			r.others = max(r.others, s.others)
			if ours {
				r.ours = s.micros
			} else if r.theirs == 0 || s.micros < r.theirs {
				r.theirs = s.micros
			}
			rounds[s.round] = r
		}
	}
	var quiet []float64
	for _, r := range rounds {
		if r.ours > 0 && r.theirs > 0 {
			list = append(list, r.theirs/r.ours)
			if r.others < loud {
				quiet = append(quiet, r.theirs/r.ours)
			}
		}
	}
	if len(quiet) >= 3 {
		return quiet
	}
	return list
}

// ownAlgos are sides of our own that take a named algorithm, "ring" or "ring:4" with channels,
// beside the one that the engine picks.
func ownAlgos(names string) (list []side) {
	for _, name := range strings.Split(names, ",") {
		if name == "" {
			continue
		}
		algo, channels, _ := strings.Cut(name, ":")
		words := []string{"--algo", algo}
		if channels != "" {
			words = append(words, "--channels", channels)
		}
		list = append(list, side{us + "/" + name, func(*trial) bool { return true }, busbar(words...)})
	}
	return list
}

// crowded reports whether ranks are more than processors.
func (t *trial) crowded() bool { return t.ranks > runtime.NumCPU() }

// own writes the times of algorithms that were asked for.
func (b *book) own(w io.Writer) {
	var keys []key
	for k := range b.samples {
		if strings.HasPrefix(k.side, us+"/") {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.SortFunc(keys, func(x, y key) int {
		return strings.Compare(fmt.Sprintf("%s %s %04d %016d %s", x.section, x.op, x.ranks, x.size, x.side), fmt.Sprintf("%s %s %04d %016d %s", y.section, y.op, y.ranks, y.size, y.side))
	})
	fmt.Fprintf(w, "\n## Algorithms by name\n\nA ratio is that of the picked algorithm's time over this one's: above 1 this one is faster.\n\n| cell | ranks | size | algorithm | time | ratio |\n|---|---:|---:|---|---:|---:|\n")
	for _, k := range keys {
		picked := k
		picked.side = us
		x, _ := b.median(k)
		y, _ := b.median(picked)
		fmt.Fprintf(w, "| %s, %s | %d | %v | %s | %s | %.2f |\n", k.op, strings.TrimPrefix(k.section, "ops "), k.ranks, unit.Bytes(k.size), strings.TrimPrefix(k.side, us+"/"), micros(x), y/x)
	}
}
