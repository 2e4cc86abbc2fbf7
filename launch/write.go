package launch

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
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
// unless with force: what an earlier plan wrote is removed where nobody changed it, and nobody's work is written over;
// plan.json goes first and comes last, so that what busbar exec finds is whole.
func Write(dir string, files []File, force bool) error {
	named := dir
	dir = filepath.Clean(dir)
	there, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return failure.Cannot(err)
	}
	fresh := len(there) == 0
	if !fresh && !force {
		return fmt.Errorf("%s: the folder is not empty (%s); take another, or force it to replace an "+
			"earlier plan", named, there[0].Name())
	}
	old, yours := earlier(files, dir)
	if len(yours) > 0 {
		return fmt.Errorf("%s: %s: not as an earlier plan wrote them; move them away, or take another folder", named,
			strings.Join(yours, ", "))
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
		mode := os.FileMode(0o666)
		if f.Run {
			mode = 0o777 // who may read it may run it
		}
		if err := os.WriteFile(filepath.Join(stage, f.Name), []byte(f.Text), mode); err != nil {
			return outfile.CannotWrite(filepath.Join(named, f.Name), err)
		}
	}
	if fresh {
		_ = os.Remove(dir) // empty, or not there
		if err := os.Rename(stage, dir); err != nil {
			return failure.Cannot(fmt.Errorf("--emit: %w; expected a folder that nobody else writes into", err))
		}
		return nil
	}
	return replacePlan(files, old, dir, stage)
}

// listName is the file with what was written, as sha256sum checks it.
const listName = ".busbar-files"

func listed(name string, text []byte) string { return fmt.Sprintf("%x  %s", sha256.Sum256(text), name) }

// earlier are the files that an earlier plan wrote and nobody changed, and what is in the way of the new ones: a user's
// work, a folder, a link.
func earlier(files []File, dir string) (old, yours []string) {
	list, err := regular(filepath.Join(dir, listName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		yours = append(yours, listName)
	}
	for line := range strings.SplitSeq(string(list), "\n") {
		_, name, _ := strings.Cut(line, "  ")
		if data, err := regular(filepath.Join(dir, name)); err == nil && filepath.Base(name) == name &&
			listed(name, data) == line {
			old = append(old, name)
		}
	}
	for _, f := range files {
		data, err := regular(filepath.Join(dir, f.Name))
		if !slices.Contains(old, f.Name) && !errors.Is(err, os.ErrNotExist) && (err != nil || string(data) != f.Text) {
			yours = append(yours, f.Name)
		}
	}
	return old, yours
}

// regular reads a regular file, and waits for no pipe.
func regular(path string) ([]byte, error) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.ErrUnsupported)
	}
	return os.ReadFile(path)
}

// replacePlan moves the files of a plan to where those of an earlier one were.
func replacePlan(files []File, old []string, dir, stage string) error {
	for _, name := range slices.Insert(old, 0, "plan.json") {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failure.Cannot(err)
		}
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(stage, f.Name), filepath.Join(dir, f.Name)); err != nil {
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
