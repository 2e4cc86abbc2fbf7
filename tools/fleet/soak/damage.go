package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/fleet"
	"busbar.dev/fleet/hub"
)

// damage does something to a file of the store that a bad disk does, and says what.
func (c *corruption) damage() (string, error) {
	var files []string
	err := filepath.WalkDir(c.store(), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
			if strings.HasSuffix(name, ".blk") { // most of what lies on a disk
				files = append(files, name, name, name)
			}
			if strings.Contains(name, "/BUSBAR/") { // leases are made anew at each start
				files = append(files, name, name, name)
			}
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no files in the store: %w", err)
	}
	file := files[c.random.IntN(len(files))]
	name, _ := filepath.Rel(c.store(), file)
	name = filepath.Join(filepath.Base(filepath.Dir(filepath.Dir(name))), filepath.Base(filepath.Dir(name)),
		filepath.Base(name))
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	switch kind := c.random.IntN(10); {
	case kind < 4 && len(data) > 0:
		bits := 1 + c.random.IntN(3)
		for range bits {
			data[c.random.IntN(len(data))] ^= 1 << c.random.IntN(8)
		}
		return fmt.Sprintf("%d bits flipped in %s", bits, name), os.WriteFile(file, data, 0o600)
	case kind < 7 && len(data) > 0:
		at := c.random.IntN(len(data))
		return fmt.Sprintf("%s cut to %d of %d bytes", name, at, len(data)), os.Truncate(file, int64(at))
	case kind == 7 && len(data) > 512: // a sector that reads as zeros
		at := c.random.IntN(len(data)/512) * 512
		clear(data[at : at+min(512, len(data)-at)])
		return fmt.Sprintf("a sector of %s is zero", name), os.WriteFile(file, data, 0o600)
	case kind == 8 && c.random.IntN(4) == 0:
		dir := filepath.Dir(file)
		return "all of " + filepath.Dir(name) + " is gone", os.RemoveAll(dir)
	}
	return name + " is gone", os.Remove(file)
}

// deaf is a bus on which nobody is asked for what is missing, so that the reports can be compared.
type deafBus struct{ hub.Bus }

func (deafBus) AskResend(fleet.Name, *fleet.Resend) error { return nil }

func (deafBus) Resend(context.Context, []fleet.Span) (int, error) { return 0, nil }

// check starts the server on what is left, holds what it reports against what is missing, and waits until all of it is
// back.
func (c *corruption) check(ctx context.Context, all contents) (missing int, err error) {
	x, err := c.start(ctx)
	if err != nil {
		return 0, fmt.Errorf("the server does not start: %w", err)
	}
	defer x.close()
	there, bad, err := read(ctx, x.bus)
	if err != nil {
		return 0, err
	}
	if bad > 0 {
		return 0, fmt.Errorf("%d messages are no events", bad)
	}
	gone := all.without(there)
	for _, m := range gone {
		missing += len(m)
	}
	h, stop, err := x.hub(ctx, deafBus{hub.OnBus(x.bus, x.journal)})
	if err != nil {
		return missing, err
	}
	err = until(patience, func() error {
		now, _, err := read(ctx, x.bus) // an agent may have been about to send something again
		if err != nil {
			return err
		}
		return all.without(now).reported(h.Missing())
	})
	if err == nil && missing > 0 {
		err = until(patience, func() error { return found(h) })
	}
	if err != nil {
		last, _ := x.bus.Last(ctx)
		now, _, _ := read(ctx, x.bus)
		err = fmt.Errorf("%w (the hub has read to %d of %d, leads: %v, and reports %v; not in the store now: %v)", err,
			h.View().Seq(), last, h.Leads(), h.Missing(), all.without(now))
	}
	stop()
	if err != nil {
		return missing, err
	}
	if h, stop, err = x.hub(ctx, hub.OnBus(x.bus, x.journal)); err != nil {
		return missing, err
	}
	defer stop()
	err = until(patience, func() error {
		if list := h.Missing(); len(list) > 0 {
			return fmt.Errorf("still missing: %d spans, the first %s %d to %d", len(list), list[0].Node, list[0].From,
				list[0].To)
		}
		if found(h) == nil { // then the server still has something to say
			return errors.New("a finding says that the store is damaged, and nothing is missing")
		}
		now, _, err := read(ctx, x.bus)
		if err != nil {
			return err
		}
		return all.same(now)
	})
	if err != nil {
		return missing, err
	}
	for n, m := range h.View().Ignored() {
		if m > 0 && n != "said before" && n != "order is over" && n != "earlier sweep" {
			return missing, fmt.Errorf("%d events were not taken: %s", m, n)
		}
	}
	now, _, err := read(ctx, x.bus)
	for n, m := range now { // what came meanwhile is part of it from now on
		for k, s := range m {
			if all[n] == nil {
				all[n] = map[uint64]said{}
			}
			all[n][k] = s
		}
	}
	return missing, err
}

// found tells whether a finding speaks of the store.
func found(h *hub.Hub) error {
	for _, f := range h.View().Findings() {
		if f.Kind == hub.StoreDamaged && f.Cleared.IsZero() {
			return nil
		}
	}
	return fmt.Errorf("no finding says that the store is damaged")
}

// without is what is in one and not in the other.
func (a contents) without(b contents) contents {
	out := contents{}
	for n, m := range a {
		for k := range m {
			if b[n][k].times == 0 {
				if out[n] == nil {
					out[n] = map[uint64]said{}
				}
				out[n][k] = said{times: 1}
			}
		}
	}
	return out
}

// reported holds what a hub says against what is missing, number for number.
func (a contents) reported(list []hub.Missing) error {
	told := contents{}
	for _, m := range list {
		if told[m.Node] == nil {
			told[m.Node] = map[uint64]said{}
		}
		for k := m.From; k <= m.To; k++ {
			told[m.Node][k] = said{times: 1}
		}
	}
	for n, m := range a.without(told) {
		return fmt.Errorf("%d numbers of %q are missing and not reported", len(m), n)
	}
	for n, m := range told.without(a) {
		return fmt.Errorf("%d numbers of %q are reported and not missing", len(m), n)
	}
	return nil
}

// same tells whether all is there, once, and says what it said.
func (a contents) same(now contents) error {
	for n, m := range a.without(now) {
		return fmt.Errorf("%d numbers of %q are lost", len(m), n)
	}
	for n, m := range now {
		for k, s := range m {
			if s.times > 1 {
				return fmt.Errorf("number %d of %q is there %d times", k, n, s.times)
			}
			if was := a[n][k]; was.times > 0 && was.says != s.says {
				return fmt.Errorf("number %d of %q says something else than before", k, n)
			}
		}
	}
	return nil
}
