//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/internal/test/rdmatest"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the command as well, for the scripts.
func TestMain(m *testing.M) {
	rdmatest.Main()
	measurePart()
	testscript.Main(apart{m}, map[string]func(){
		"busbar": func() {
			os.Exit(program())
		},
		"kubectl-busbar": func() {
			asPlugin("kubectl-busbar")
			os.Exit(program())
		},
		"all_reduce_perf": fakePerf,
		"lab-trainer":     labTrainer,
		"quick-agent":     quickAgent,
		"rdma-agent":      rdmaAgent,
		"rdma-part":       rdmaPart,
	})
}

// apart runs tests apart from what the user has: a server may run with its defaults, and settings may name another.
type apart struct{ *testing.M }

func (a apart) Run() int {
	state, err := os.MkdirTemp("", "busbar-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCannot
	}
	defer os.RemoveAll(state)
	os.Setenv("XDG_STATE_HOME", state)
	for _, name := range []string{"BUSBAR_SERVER", "BUSBAR_SERVER_CA", "BUSBAR_TOKEN", "BUSBAR_CREDS", "STATE_DIRECTORY"} {
		os.Unsetenv(name)
	}
	return a.M.Run()
}

// TestScripts runs the scripts in testdata/script, named <command>_<case>.
func TestScripts(t *testing.T) {
	var files []string
	dir := "testdata/script"
	// with the race detector: only what starts goroutines; the rest computes, and takes minutes under it
	if testing.Short() {
		dir = ""
		for _, p := range []string{"bench", "bench_pairs", "bench_step", "lab", "lab_real", "*_interrupt*"} {
			list, err := filepath.Glob(filepath.Join("testdata", "script", p+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				if !slices.Contains(files, f) {
					files = append(files, f)
				}
			}
		}
	}
	setup := func(e *testscript.Env) error {
		e.Defer(func() { endLabs(filepath.Join(e.WorkDir, "labs")) }) // of a script that failed before it could
		return nil
	}
	testscript.Run(t, testscript.Params{Dir: dir, Files: files, Setup: setup, Condition: func(word string) (bool, error) {
		switch word {
		case "lab":
			return labAllowed(t), nil
		case "root": // may read everything
			return os.Geteuid() == 0, nil
		case "quiet": // fresh measurements may be judged
			return quiet(), nil
		}
		return false, fmt.Errorf("unknown condition %q", word)
	}})
}
