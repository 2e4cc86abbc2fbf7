package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the command as well, for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"busbar": func() {
			os.Exit(program())
		},
		"all_reduce_perf": fakePerf,
	})
}

// TestScripts runs the scripts in testdata/script, named <command>_<case>.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Condition: func(word string) (bool, error) {
		if word != "lab" {
			return false, fmt.Errorf("unknown condition %q", word)
		}
		return labAllowed(t), nil
	}})
}
