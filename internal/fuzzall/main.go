// Fuzzall runs every fuzz target of the module for a short while, one after the
// other, because go test -fuzz takes one target at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
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

func run(each string) error {
	out, err := exec.Command("go", "test", "-list", "^Fuzz", "./...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	var targets []string
	var failed []error
	count := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1 && strings.HasPrefix(f[0], "Fuzz"):
			targets = append(targets, f[0])
		case len(f) >= 2 && f[0] == "ok":
			for _, t := range targets {
				if err := fuzz(f[1], t, each); err != nil {
					failed = append(failed, err) // the others are worth knowing too
				}
				count++
			}
			targets = nil
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	fmt.Printf("fuzzed %d targets, %s each\n", count, each)
	return nil
}

func fuzz(pkg, target string, each string) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", pkg, target, err, out)
	}
	return nil
}
