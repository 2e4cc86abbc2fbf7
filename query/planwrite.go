package query

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/outfile"
	"busbar.dev/launch"
)

// Write writes the files of a plan into Dir: all of them into a folder beside it first, so that a full disk or a kill leaves an
// earlier plan as it was. A new folder comes by one rename. A folder that is not empty is refused, unless with force: files then
// take the places of those of the same names, and what an earlier plan left is removed; plan.json goes first and comes last, so
// that what busbar exec finds is whole.
func (d *PlanFiles) Write(force bool) error {
	if len(d.Texts) == 0 {
		return ErrDecoded
	}
	dir := filepath.Clean(d.Dir)
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return failure.Cannot(err)
	}
	fresh := len(list) == 0
	if !fresh && !force {
		return fmt.Errorf("%s: the folder is not empty (%s); take another, or force it to write over files of the same names", d.Dir, list[0].Name())
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
		if err := emitFile(filepath.Join(stage, f.Name), f); err != nil {
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
func replacePlan(d *PlanFiles, dir, stage string) error {
	stale := append([]string{"plan.json"}, d.Stale...) // what an earlier plan left there would pass for this one's
	for _, l := range d.Left {
		stale = append(stale, l.File)
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failure.Cannot(err)
		}
	}
	for _, f := range d.Texts { // plan.json is the last; a link is replaced, not followed: what it points to is no file of a plan
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
func emitFile(name string, f launch.File) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return failure.Cannot(err)
	}
	var w outfile.Writer
	if err := w.Write(name, func(to io.Writer) error { _, err := to.Write(f.Text); return err }); err != nil || !f.Run {
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
