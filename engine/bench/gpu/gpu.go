// Package gpu measures NCCL itself: it runs the programs of nccl-tests through NCCL's algorithms, protocols and numbers
// of channels, and finds the best setting of every size.
//
// It starts no program by itself: who uses it says how (Start). The package is not promised: names may change between
// releases.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/texttab"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Start runs a program until it ends; w gets what it prints. A program that cannot be started is a *ranks.StartError.
type Start func(ctx context.Context, args []string, w io.Writer) error

// Setting is one thing to try.
type Setting struct {
	Algo     string `json:"algo"` // "auto": NCCL's choice
	Proto    string `json:"proto"`
	Channels int    `json:"channels,omitempty"` // 0: NCCL's choice
}

// Auto is NCCL's own choice of everything.
var Auto = Setting{Algo: "auto", Proto: "auto"}

// Auto reports NCCL's own choice of everything.
func (s Setting) Auto() bool { return s == Auto }

// Env is what makes NCCL do it.
func (s Setting) Env() map[string]string {
	e := map[string]string{}
	if s.Algo != "auto" {
		e["NCCL_ALGO"] = strings.ReplaceAll(s.Algo, "_", "")
	}
	if s.Proto != "auto" {
		e["NCCL_PROTO"] = s.Proto
	}
	if s.Channels > 0 {
		e["NCCL_MIN_NCHANNELS"], e["NCCL_MAX_NCHANNELS"] = strconv.Itoa(s.Channels), strconv.Itoa(s.Channels)
	}
	return e
}

func (s Setting) String() string {
	if s.Auto() {
		return "auto"
	}
	var parts []string
	if s.Algo != "auto" || s.Proto != "auto" {
		parts = append(parts, s.Algo+"/"+s.Proto)
	}
	if s.Channels > 0 {
		parts = append(parts, fmt.Sprintf("%d channels", s.Channels))
	}
	return strings.Join(parts, ", ")
}

// Settings are all combinations, NCCL's own choice first; channels are numbers, 0 for NCCL's choice.
func Settings(algos []nccl.Algo, protos []nccl.Proto, channels []int) []Setting {
	list := []Setting{Auto}
	for _, n := range channels {
		if n > 0 {
			list = append(list, Setting{"auto", "auto", n})
		}
		for _, a := range algos {
			for _, p := range protos {
				// The other algorithms know one protocol.
				if a != nccl.Ring && a != nccl.Tree && p != nccl.Simple {
					continue
				}
				list = append(list, Setting{a.String(), p.String(), n})
			}
		}
	}
	return list
}

// Algorithms are those that a collective has.
func Algorithms(kind coll.Kind) []nccl.Algo {
	switch kind {
	case coll.AllReduce:
		return []nccl.Algo{nccl.Ring, nccl.Tree, nccl.NVLS, nccl.NVLSTree}
	case coll.AllGather, coll.ReduceScatter:
		return []nccl.Algo{nccl.Ring, nccl.NVLS, nccl.PAT}
	case coll.Broadcast, coll.Reduce:
		return []nccl.Algo{nccl.Ring}
	}
	return nil // sends and receives know no algorithms
}

// Command is what runs one setting.
type Command struct {
	Setting string            `json:"setting"`
	Env     map[string]string `json:"env"` // what makes NCCL do it
	Args    []string          `json:"args"`
}

// Test is a program of nccl-tests and what it is asked for.
type Test struct {
	Program  string
	Launch   []string // what starts the ranks, before the program
	Kind     coll.Kind
	Min, Max unit.Bytes
	Factor   float64
	Warm     int
	Iters    int
	Dtype    coll.Dtype
	GPUs     int // of a process
	Check    bool
	Cluster  string // kept with the results
}

// Command is what runs one setting.
func (t *Test) Command(s Setting) []string {
	args := slices.Clone(t.Launch)
	if env := s.Env(); len(env) > 0 {
		args = append(append(args, "env"), SettingWords(env)...)
	}
	check := "0"
	if t.Check {
		check = "1"
	}
	// In numbers and nccl-tests' own words, for it reads fewer than we do.
	return append(args, t.Program, "-b", fmt.Sprint(int64(t.Min)), "-e", fmt.Sprint(int64(t.Max)), "-f",
		fmt.Sprint(t.Factor), "-w", fmt.Sprint(t.Warm), "-n", fmt.Sprint(t.Iters), "-d", t.Dtype.String(), "-g",
		fmt.Sprint(t.GPUs), "-c", check)
}

// Measure runs one setting and returns its sweeps, and how many rows had no time. Rows that were printed before the
// program failed come back with the error.
func (t *Test) Measure(ctx context.Context, start Start, s Setting) (list result.Sweeps, untimed int, err error) {
	list, untimed, err = t.run(ctx, start, t.Command(s))
	session, when := bench.NewSession(), time.Now().UTC().Truncate(time.Second)
	for _, x := range list {
		x.Env, x.Session, x.When, x.Cluster = s.Env(), session, when, t.Cluster
		for i := range x.Points {
			p := &x.Points[i]
			p.Algo, p.Channels = s.Algo, s.Channels
			if s.Proto != "auto" {
				p.Proto = s.Proto
			}
		}
	}
	return list, untimed, err
}

// run runs a command of nccl-tests and reads what it prints.
func (t *Test) run(ctx context.Context, start Start, args []string) (list result.Sweeps, untimed int, err error) {
	out := ranks.Printed{Most: mostOutput}
	failed := start(ctx, args, &out)
	var unstarted *ranks.StartError
	switch {
	case errors.As(failed, &unstarted):
		return nil, 0, failed
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	}
	program := filepath.Base(args[0])
	read, err := nccltests.ReadOutput(program, &out.Buffer)
	if err != nil {
		return nil, 0, errors.Join(failed, err)
	}
	for i := range read.Tables { // old releases do not say, and we know what we asked for
		if x := &read.Tables[i]; x.OpFrom != "header" {
			x.Name(t.Kind)
		}
	}
	if list, err = read.Sweeps(); err == nil {
		untimed = read.Untimed
	}
	rows := len(list.Rows())
	switch {
	case failed != nil && read.Failure != "":
		err = fmt.Errorf("%s (%w)", texttab.Clean(read.Failure), failed)
	case failed != nil:
		err = fmt.Errorf("%s: %w", program, failed)
	case err == nil && rows == 0 && untimed > 0:
		err = fmt.Errorf("%s printed no time that is a number", program)
	case err == nil && rows == 0:
		err = fmt.Errorf("%s printed no table", program)
	}
	return list, untimed, err
}

// mostOutput is what is read of a program's output.
const mostOutput = 256 << 20
