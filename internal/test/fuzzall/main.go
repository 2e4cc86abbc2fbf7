// Fuzzall runs every fuzz target of the module for a short while, because go test -fuzz takes one target at a time, and
// links it anew for each.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// suite is the fuzz targets of a package.
type suite struct {
	pkg, dir string
	targets  []string
}

func run(each, skip string) error {
	suites, err := list(skip)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "busbar-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// One worker a target and a package a processor: most of the time goes into linking and starting,
	// which more workers of one target only wait for.
	next := make(chan suite)
	var mu sync.Mutex
	var failed []error
	count := 0
	var wg sync.WaitGroup
	for i := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			file := filepath.Join(dir, fmt.Sprintf("%d.test", i))
			for s := range next {
				err := s.fuzz(file, filepath.Join(dir, "kept"), each)
				mu.Lock()
				count += len(s.targets)
				failed = append(failed, err) // the others are worth knowing too
				mu.Unlock()
			}
		})
	}
	for _, s := range suites {
		next <- s
	}
	close(next)
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Printf("fuzzed %d targets, %s each\n", count, each)
	return nil
}

// list finds the targets in the source, which is quicker than to link every test. Packages that a
// pattern names are left out.
func list(skip string) ([]suite, error) {
	left, err := regexp.Compile(skip)
	if err != nil {
		return nil, err
	}
	form := `{{.ImportPath}}{{"\t"}}{{.Dir}}{{range .TestGoFiles}}{{"\t"}}{{.}}{{end}}{{range .XTestGoFiles}}{{"\t"}}{{.}}{{end}}`
	out, err := exec.Command("go", "list", "-f", form, "./...").Output()
	if err != nil {
		return nil, err
	}
	var all []suite
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSpace(line), "\t")
		s := suite{pkg: words[0], dir: words[1]}
		if skip != "" && left.MatchString(s.pkg) {
			continue
		}
		if err := s.find(words[2:]); err != nil {
			return nil, err
		}
		if len(s.targets) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

func (s *suite) find(files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			s.targets = append(s.targets, string(m[1]))
		}
	}
	return nil
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]*)\(`)

// fuzz links a package's tests once and runs its targets. A number of runs that is counted is over before the code that
// they reach could guide them, so that the tests are built as ever; to build them to be guided takes minutes, for the
// standard library and all that is linked is compiled anew.
func (s *suite) fuzz(file, kept, each string) error {
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", file}
	if !strings.HasSuffix(each, "x") {
		args = append(args, "-fuzz=.")
	}
	if out, err := exec.Command("go", append(args, s.pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.pkg, err, out)
	}
	var failed []error
	for _, name := range s.targets {
		cmd := exec.Command(file, "-test.run=^$", "-test.fuzz=^"+name+"$", "-test.fuzztime="+each, "-test.parallel=1",
			"-test.fuzzcachedir="+filepath.Join(kept, s.pkg))
		cmd.Dir = s.dir // where it leaves an input that fails
		if out, err := cmd.CombinedOutput(); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w\n%s", s.pkg, name, err, out))
		}
	}
	return errors.Join(failed...)
}
