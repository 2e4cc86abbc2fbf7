package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine/ranks"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// find is where nccl-tests' program is. One that was built for MPI is preferred where
// something starts the ranks.
func (c *benchGPUCmd) find(kind coll.Kind) (string, error) {
	names := []string{kind.Binary(), kind.Binary() + "_mpi"}
	if c.Launch != "" {
		names[0], names[1] = names[1], names[0]
	}
	for _, name := range names {
		if c.Tests == "" {
			if path, err := exec.LookPath(name); err == nil {
				return filepath.Abs(path)
			}
			continue
		}
		for _, dir := range []string{c.Tests, filepath.Join(c.Tests, "build")} {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return filepath.Abs(path)
			}
		}
	}
	where := "in PATH; give its folder with --nccl-tests DIR"
	if c.Tests != "" {
		where = "in " + c.Tests + " or its folder build"
	}
	return "", failure.Cannot(fmt.Errorf("%s of nccl-tests is not installed: no such program %s (https://github.com/NVIDIA/nccl-tests; make, with MPI=1 for several hosts). busbar bench without gpu needs neither GPUs nor nccl-tests", kind.Binary(), where))
}

// command is what runs one setting.
func (c *benchGPUCmd) command(program string, s gpuSetting) []string {
	args := slices.Clone(c.launch)
	if env := s.env(); len(env) > 0 {
		args = append(args, "env")
		for _, k := range sortedKeys(env) {
			args = append(args, k+"="+env[k])
		}
	}
	check := "0"
	if c.Check {
		check = "1"
	}
	// In numbers and nccl-tests' own words, for it reads fewer than we do.
	least, _ := unit.ParseBytes(c.Min)
	most, _ := unit.ParseBytes(c.Max)
	dtype, _ := coll.ParseDtype(c.Dtype)
	return append(args, program, "-b", fmt.Sprint(int64(least)), "-e", fmt.Sprint(int64(most)), "-f", fmt.Sprint(c.Factor), "-w", fmt.Sprint(c.Warm), "-n", fmt.Sprint(c.Iters), "-d", dtype.String(), "-g", fmt.Sprint(c.GPUs), "-c", check)
}

// bounded keeps the beginning of what a program prints.
type bounded struct {
	bytes.Buffer
	cut bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxMeasured - b.Len(); room < len(p) {
		b.cut = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// run runs nccl-tests and reads what it prints. Rows that it printed before it failed come
// back with the error.
func (c *benchGPUCmd) run(e *env, kind coll.Kind, args []string) (list result.Sweeps, untimed int, err error) {
	var out bounded
	failed := ranks.Program(e.ctx, c.Timeout, args, &out)
	var start *ranks.StartError
	switch {
	case errors.As(failed, &start):
		return nil, 0, failed
	case e.ctx.Err() != nil:
		return nil, 0, e.ctx.Err()
	}
	read, err := nccltests.ReadOutput(filepath.Base(args[0]), &out.Buffer)
	if err != nil {
		return nil, 0, errors.Join(failed, err)
	}
	for i := range read.Tables { // old releases do not say, and we know what we asked for
		if t := &read.Tables[i]; t.OpFrom != "header" {
			t.Name(kind)
		}
	}
	if list, err = read.Sweeps(); err == nil {
		untimed = read.Untimed
	}
	rows := len(list.Rows())
	switch {
	case failed != nil && len(read.Failures) > 0:
		err = fmt.Errorf("%s (%w)", texttab.Clean(strings.TrimSpace(read.Failures[0].Text)), failed)
	case failed != nil:
		err = fmt.Errorf("%s: %w", filepath.Base(args[0]), failed)
	case err == nil && rows == 0 && untimed > 0:
		err = fmt.Errorf("%s printed no time that is a number", filepath.Base(args[0]))
	case err == nil && rows == 0:
		err = fmt.Errorf("%s printed no table", filepath.Base(args[0]))
	}
	return list, untimed, err
}
