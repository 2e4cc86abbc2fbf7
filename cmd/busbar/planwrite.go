package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"busbar.dev/internal/failure"
	"busbar.dev/launch"
	"busbar.dev/query"
)

// writePlan writes the files of a plan. plan.json goes first and comes last: what exec finds is whole, and not an earlier
// plan's among this one's files.
func (e *env) writePlan(d *query.PlanFiles) error {
	stale := append([]string{"plan.json"}, d.Stale...) // what an earlier plan left there would pass for this one's
	for _, l := range d.Left {
		stale = append(stale, l.File)
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(d.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failure.Cannot(err)
		}
	}
	for _, f := range slices.Backward(d.Texts) {
		if err := e.emitFile(filepath.Join(d.Dir, f.Name), f); err != nil {
			return err
		}
	}
	return nil
}

// emitFile writes one file of a plan.
func (e *env) emitFile(name string, f launch.File) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return failure.Cannot(err)
	}
	// A link is replaced, not followed: what it points to is no file of a plan.
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if err := os.Remove(name); err != nil {
			return failure.Cannot(err)
		}
	}
	if err := e.writeFile(name, bytesOf(f.Text)); err != nil || !f.Run {
		return err
	}
	info, err := os.Stat(name)
	if err == nil { // who may read it may run it
		err = os.Chmod(name, info.Mode().Perm()|info.Mode().Perm()&0o444>>2)
	}
	if err != nil {
		return failure.Cannot(err)
	}
	return nil
}
