package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
	"busbar.dev/launch"
	"busbar.dev/query"
)

// writePlan writes the files of a plan: all of them into a folder beside it first, so that a full disk or a kill leaves an earlier plan as
// it was. A new folder comes by one rename. With force, files take the places of those of the same names; plan.json goes first and comes last:
// what exec finds is whole.
func (e *env) writePlan(d *query.PlanFiles, force bool) error {
	dir := filepath.Clean(d.Dir)
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return failure.Cannot(err)
	}
	fresh := len(list) == 0
	if !fresh && !force {
		return fmt.Errorf("--emit %s: another run has written into the folder meanwhile (%s); take another, or --force to write over files of the same names", d.Dir, list[0].Name())
	}
	at := dir
	if fresh {
		at = filepath.Dir(dir)
	}
	if err := os.MkdirAll(at, 0o777); err != nil {
		return failure.Cannot(err)
	}
	removeStaged(at)
	stage := filepath.Join(at, stagedName+strconv.Itoa(os.Getpid()))
	defer os.RemoveAll(stage)
	for _, f := range d.Texts {
		if err := e.emitFile(filepath.Join(stage, f.Name), f); err != nil {
			return err
		}
	}
	if fresh {
		_ = os.Remove(dir) // empty, or not there
		if err := os.Rename(stage, dir); err != nil {
			return failure.Cannot(fmt.Errorf("--emit: %w; expected a folder that nobody else writes into", err))
		}
		return nil
	}
	return replacePlan(d, dir, stage)
}

// replacePlan moves the files of a plan over those of an earlier one.
func replacePlan(d *query.PlanFiles, dir, stage string) error {
	stale := append([]string{"plan.json"}, d.Stale...) // what an earlier plan left there would pass for this one's
	for _, l := range d.Left {
		stale = append(stale, l.File)
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failure.Cannot(err)
		}
	}
	for _, f := range slices.Backward(d.Texts) { // a link is replaced, not followed: what it points to is no file of a plan
		to := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return failure.Cannot(err)
		}
		if err := os.Rename(filepath.Join(stage, f.Name), to); err != nil {
			return failure.Cannot(err)
		}
	}
	return nil
}

// stagedName begins the name of a folder whose plan is being written, before the process's number.
const stagedName = ".busbar-plan-"

// removeStaged removes what processes left that were killed while they wrote.
func removeStaged(folder string) {
	names, _ := filepath.Glob(filepath.Join(folder, stagedName+"*"))
	for _, name := range names {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), stagedName))
		if err == nil && pid > 0 && osdep.Gone(pid) {
			os.RemoveAll(name)
		}
	}
}

// emitFile writes one file of a plan.
func (e *env) emitFile(name string, f launch.File) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return failure.Cannot(err)
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
