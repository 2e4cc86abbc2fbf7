package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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

// sample is one round's time.
type sample struct {
	micros float64
	round  int
}

// book holds all that was measured.
type book struct {
	dir           string
	rounds, again int // again: rounds more for cells that miss a goal
	samples       map[key][]sample
	errors        []string
	close         []key // that were measured again
}

// play lets every side do a trial once. Who begins changes from round to round.
func (b *book) play(ctx context.Context, t *trial, round int, only ...string) {
	all := slices.DeleteFunc(sides(), func(s side) bool {
		name, _, _ := strings.Cut(s.name, "/")
		late := s.name == spinner && t.crowded() && round > 0
		return !s.takes(t) || late || len(only) > 0 && name != us && !slices.Contains(only, name)
	})
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
		brief := *t
		brief.iters, brief.warm, brief.budget = 2, 1, 0.01
		t, limit = &brief, 5*time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := together(s.start(ctx, b.dir, t))
	got, bad := rows(s.name, t.op, out)
	if err == nil {
		err = bad
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("ended after %v", limit)
	}
	if err != nil {
		b.errors = append(b.errors, fmt.Sprintf("%s, %s of %d ranks from %d B: %v", s.name, t.op, t.ranks, t.sizes[0], err))
	}
	for size, micros := range got {
		k := key{t.section, t.op, t.ranks, size, s.name}
		b.samples[k] = append(b.samples[k], sample{micros, round})
	}
}

// crowded reports whether ranks are more than processors.
func (t *trial) crowded() bool { return t.ranks > runtime.NumCPU() }

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

// best is the median time of a key; of a side with several algorithms that of the fastest.
func (b *book) best(k key) (least float64, found bool) {
	for _, s := range sides() {
		if name, _, _ := strings.Cut(s.name, "/"); name != k.side {
			continue
		}
		one := k
		one.side = s.name
		var all []float64
		for _, x := range b.samples[one] {
			all = append(all, x.micros)
		}
		if len(all) > 0 {
			if x := stats.Median(all); !found || x < least {
				least, found = x, true
			}
		}
	}
	return least, found
}

// say tells the person what goes on.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
