package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// near is how close to its goal a ratio is looked at again.
const near = 1.05

// closer measures again, by themselves, the cells that miss a goal or come close, with the sides that matter.
func (b *book) closer(ctx context.Context, list []trial) {
	for _, t := range list {
		for _, size := range t.sizes {
			tight := b.tight(tableOf(t.section, t.op), t.ranks, size)
			if len(tight) == 0 || b.again == 0 || ctx.Err() != nil {
				continue
			}
			one := t
			one.sizes = []int64{size}
			for k := range b.again {
				b.play(ctx, &one, b.rounds+k, tight...)
			}
			for _, s := range tight {
				b.close = append(b.close, key{t.section, t.op, t.ranks, size, s})
			}
		}
	}
}

func tableOf(section, op string) *table {
	list := tables()
	return &list[slices.IndexFunc(list, func(x table) bool { return x.section == section && x.op == op })]
}

// tight are the sides of a cell whose goal is missed or nearly so.
func (b *book) tight(t *table, ranks int, size int64) (list []string) {
	ours, ok := b.best(key{t.section, t.op, ranks, size, us})
	for _, s := range t.sides {
		theirs, found := b.best(key{t.section, t.op, ranks, size, s})
		if ok && found && theirs/ours < near*t.least(s, size) {
			list = append(list, s)
		}
	}
	return list
}

// spread tells how far the rounds of those cells lie apart.
func (b *book) spread(w io.Writer) {
	if len(b.close) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## How far rounds lie apart\n\n"+
		"Cells that missed a goal or came within %.0f%% of it were measured %d times more, by themselves. A ratio is that "+
		"of two runs "+
		"that followed each other; the tables have the ratio of the medians of all rounds.\n\n"+
		"| cell | ranks | size | against | median | middle half | all rounds | at the goal |\n"+
		"|---|---:|---:|---|---:|---:|---:|---:|\n", 100*(near-1), b.again)
	for _, k := range b.close {
		list := b.ratios(k)
		if len(list) == 0 {
			continue
		}
		goal, held := tableOf(k.section, k.op).least(k.side, k.size), 0
		for _, x := range list {
			if x >= goal {
				held++
			}
		}
		slices.Sort(list)
		n := len(list)
		fmt.Fprintf(w, "| %s, %s | %d | %v | %s | %.2f | %.2f–%.2f | %.2f–%.2f | %d of %d |\n", k.op,
			strings.TrimPrefix(k.section, "ops "), k.ranks,
			unit.Bytes(k.size), k.side, stats.Median(list), list[n/4], list[n-1-n/4], list[0], list[n-1], held, n)
	}
}

// ratios are a peer's times over ours, round by round; of a peer with several algorithms that of the fastest.
func (b *book) ratios(k key) (list []float64) {
	theirs := map[int]float64{}
	for _, s := range sides() {
		one := k
		one.side = s.name
		if name, _, _ := strings.Cut(s.name, "/"); name != k.side {
			continue
		}
		for _, x := range b.samples[one] {
			if was, ok := theirs[x.round]; !ok || x.micros < was {
				theirs[x.round] = x.micros
			}
		}
	}
	k.side = us
	for _, x := range b.samples[k] {
		if y, ok := theirs[x.round]; ok {
			list = append(list, y/x.micros)
		}
	}
	return list
}
