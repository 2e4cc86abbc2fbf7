//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"busbar.dev/internal/stats"
)

// key is what a time belongs to.
type key struct {
	section, op string
	ranks       int
	size        int64
	side        string
}

// sample is one round's time, and which share of the processors others took meanwhile.
type sample struct {
	micros float64
	others float64
	round  int
}

// book holds all that was measured.
type book struct {
	dir     string
	machine *machine
	samples map[key][]sample
	errors  []string
	others  []float64

	only   *cell  // nil is all of them
	algos  string // of ours, besides what the engine picks
	again  int    // rounds more for cells that miss a goal
	played []trial
	close  []key // that were measured again
}

// loud is the share of the processors from which on a round is taken only where no quieter one
// is to be had.
const loud = 0.10

// play lets every side do a trial once. Who begins changes from round to round.
func (b *book) play(ctx context.Context, t *trial, round int) {
	if !b.narrowed(t) {
		return
	}
	if round == 0 {
		b.played = append(b.played, *t)
	}
	all := slices.DeleteFunc(sides(b.algos), func(s side) bool { return !s.takes(t) || s.name == spinner && t.crowded() && round > 0 })
	for i := range all {
		if ctx.Err() != nil {
			return
		}
		b.one(ctx, t, all[(i+round)%len(all)], round)
	}
}

func (b *book) one(ctx context.Context, t *trial, s side, round int) {
	limit := time.Duration(20+4*t.budget*float64(len(t.sizes))) * time.Second
	if s.name == spinner && t.crowded() {
		t = t.brief()
		limit = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	since := b.machine.others()
	out, err := together(s.start(ctx, b.dir, t))
	others := since()
	b.others = append(b.others, others)
	got, bad := rows(s.name, t.op, out)
	if err == nil {
		err = bad
	}
	switch {
	case err != nil && ctx.Err() != nil:
		b.errors = append(b.errors, fmt.Sprintf("%s, %s of %d ranks from %d B: ended after %v", s.name, t.op, t.ranks, t.sizes[0], limit))
	case err != nil:
		b.errors = append(b.errors, fmt.Sprintf("%s, %s of %d ranks from %d B: %v", s.name, t.op, t.ranks, t.sizes[0], err))
	}
	for size, micros := range got {
		k := key{t.section, t.op, t.ranks, size, s.name}
		b.samples[k] = append(b.samples[k], sample{micros, others, round})
	}
}

// together runs the processes of a trial and returns what the first one prints. When one
// fails, the others are ended.
func together(list []*exec.Cmd) (string, error) {
	var out bytes.Buffer
	errs := make([]bytes.Buffer, len(list))
	ends := make(chan error, len(list))
	started := 0
	kill := func() {
		for _, cmd := range list[:started] {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	for i, cmd := range list {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 3 * time.Second
		cmd.Stderr = &errs[i]
		if i == 0 {
			cmd.Stdout = &out
		}
		if err := cmd.Start(); err != nil {
			kill()
			return "", err
		}
		started++
	}
	for i, cmd := range list {
		go func() {
			err := cmd.Wait()
			if err != nil {
				err = fmt.Errorf("%w: %.300s", err, strings.TrimSpace(errs[i].String()))
			}
			ends <- err
		}()
	}
	var first error
	for range list {
		if err := <-ends; err != nil && first == nil {
			first = err
			kill()
		}
	}
	return out.String(), first
}

// best is the time of a key; of a side with several algorithms that of the fastest.
func (b *book) best(k key) (float64, bool) {
	if x, ok := b.median(k); ok {
		return x, true
	}
	least, found := 0.0, false
	for _, s := range sides("") {
		if !strings.HasPrefix(s.name, k.side+"/") {
			continue
		}
		one := k
		one.side = s.name
		if x, ok := b.median(one); ok && (!found || x < least) {
			least, found = x, true
		}
	}
	return least, found
}

// median is the time of a key: of the quiet rounds where there are two of them, else of all.
func (b *book) median(k key) (float64, bool) {
	var quiet, all []float64
	for _, s := range b.samples[k] {
		all = append(all, s.micros)
		if s.others < loud {
			quiet = append(quiet, s.micros)
		}
	}
	if len(quiet) >= 2 {
		all = quiet
	}
	if len(all) == 0 {
		return 0, false
	}
	return stats.Median(all), true
}

// bare measures what plain sockets carry.
func (b *book) bare(ctx context.Context, section string, ranks, runs int, sizes []int64, round int) {
	if len(sizes) == 0 {
		return
	}
	words := []string{fmt.Sprint(ranks), fmt.Sprint(runs), "1"}
	for _, s := range sizes {
		words = append(words, fmt.Sprint(s))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	since := b.machine.others()
	out, err := together([]*exec.Cmd{exec.CommandContext(ctx, b.dir+"/ring", words...)})
	others := since()
	if err != nil {
		b.errors = append(b.errors, fmt.Sprintf("plain sockets of %d ranks: %v", ranks, err))
		return
	}
	got, _ := rows(plain, "", out)
	for size, micros := range got {
		k := key{section, "all_reduce", ranks, size, plain}
		b.samples[k] = append(b.samples[k], sample{micros, others, round})
	}
}

const plain = "plain sockets"

// say tells the person what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
