// Fuzzall runs every fuzz target of the module for a short while, one a
// processor, because go test -fuzz takes one target at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

func main() {
	// Counts rather than seconds: a deadline that falls into a worker's run makes
	// go test fail with "context deadline exceeded" though nothing was found.
	each := flag.String("time", "300x", "how long each target runs, as -fuzztime takes it: 300x, 10s")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

// target is a fuzz target of a package.
type target struct{ pkg, name string }

func run(each string) error {
	targets, err := list()
	if err != nil {
		return err
	}
	// One worker a target and a target a processor: most of the time goes into linking and starting,
	// which more workers of one target only wait for.
	next := make(chan target)
	var mu sync.Mutex
	var failed []error
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for t := range next {
				if err := fuzz(t, each); err != nil {
					mu.Lock()
					failed = append(failed, err) // the others are worth knowing too
					mu.Unlock()
				}
			}
		})
	}
	for _, t := range targets {
		next <- t
	}
	close(next)
	wg.Wait()
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	fmt.Printf("fuzzed %d targets, %s each\n", len(targets), each)
	return nil
}

// list is every fuzz target of the module.
func list() ([]target, error) {
	out, err := exec.Command("go", "test", "-list", "^Fuzz", "./...").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var all []target
	var names []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1 && strings.HasPrefix(f[0], "Fuzz"):
			names = append(names, f[0])
		case len(f) >= 2 && f[0] == "ok":
			for _, n := range names {
				all = append(all, target{f[1], n})
			}
			names = nil
		}
	}
	return all, nil
}

func fuzz(t target, each string) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each, "-parallel", "1", t.pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", t.pkg, t.name, err, out)
	}
	return nil
}
