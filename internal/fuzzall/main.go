// Fuzzall runs every fuzz target of the module for a short while, one a
// processor, because go test -fuzz takes one target at a time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

func main() {
	// Counts rather than seconds: a deadline that falls into a worker's run makes
	// go test fail with "context deadline exceeded" though nothing was found.
	each := flag.String("time", "300x", "how long each target runs, as -fuzztime takes it: 300x, 10s")
	skip := flag.String("skip", "", "packages to leave out, a regular expression")
	flag.Parse()
	if err := run(*each, *skip); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

// target is a fuzz target of a package.
type target struct{ pkg, name string }

func run(each, skip string) error {
	targets, err := list(skip)
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

// list finds the targets in the source, which is quicker than to link every test. Packages that a
// pattern names are left out.
func list(skip string) ([]target, error) {
	left, err := regexp.Compile(skip)
	if err != nil {
		return nil, err
	}
	form := `{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`
	out, err := exec.Command("go", "list", "-f", form, "./...").Output()
	if err != nil {
		return nil, err
	}
	var all []target
	for line := range strings.Lines(string(out)) {
		pkg, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || skip != "" && left.MatchString(pkg) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			all = append(all, target{pkg, string(m[1])})
		}
	}
	return all, nil
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]*)\(`)

func fuzz(t target, each string) error {
	out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each, "-parallel", "1", t.pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", t.pkg, t.name, err, out)
	}
	return nil
}
