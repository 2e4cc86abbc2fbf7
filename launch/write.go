package launch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/outfile"
)

// Write writes the files of a plan into a folder: all of them into a folder beside it first, so that a full disk or a
// kill leaves an earlier plan as it was. A new folder comes by one rename. A folder that is not empty is refused,
// unless with force: files then take the places of those of the same names, and what an earlier plan wrote is removed
// where nobody changed it; plan.json goes first and comes last, so that what busbar exec finds is whole.
func Write(dir string, files []File, force bool) error {
	named := dir
	dir = filepath.Clean(dir)
	there, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return failure.Cannot(err)
	}
	fresh := len(there) == 0
	if !fresh && !force {
		return fmt.Errorf("%s: the folder is not empty (%s); take another, or force it to write over files of the same "+
			"names", named, there[0].Name())
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
	if err := os.Mkdir(stage, 0o777); err != nil {
		return failure.Cannot(fmt.Errorf("folder %s cannot be written: %w", at, errors.Unwrap(err)))
	}
	defer os.RemoveAll(stage)
	var list strings.Builder
	for _, f := range files {
		fmt.Fprintln(&list, listed(f.Name, []byte(f.Text)))
	}
	files = slices.Insert(slices.Clone(files), 0, File{Name: listName, Text: list.String()})
	for _, f := range files {
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
	return replacePlan(files, dir, stage)
}

// listName is the file with what was written, as sha256sum checks it.
const listName = ".busbar-files"

func listed(name string, text []byte) string { return fmt.Sprintf("%x  %s", sha256.Sum256(text), name) }

// replacePlan moves the files of a plan over those of an earlier one.
func replacePlan(files []File, dir, stage string) error {
	if err := os.Remove(filepath.Join(dir, "plan.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return failure.Cannot(err)
	}
	was, _ := os.ReadFile(filepath.Join(dir, listName))
	for line := range strings.Lines(string(was)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		path := filepath.Join(dir, name)
		if data, err := os.ReadFile(path); err != nil || filepath.Base(name) != name ||
			listed(name, data) != strings.TrimSpace(line) {
			continue // it is the user's
		}
		if err := os.Remove(path); err != nil {
			return failure.Cannot(err)
		}
	}
	// plan.json is the last; a link is replaced, not followed: what it points to is no file of a plan
	for _, f := range files {
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
func emitFile(name string, f File) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return failure.Cannot(err)
	}
	var w outfile.Writer
	if err := w.Write(name, func(to io.Writer) error { _, err := io.WriteString(to, f.Text); return err }); err != nil ||
		!f.Run {
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
