package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the path that go.mod gives.
const module = "busbar.dev"

var update = flag.Bool("update", false, "rewrite linked.txt")

// columns is the way data takes, left to right: a package imports packages of
// earlier columns only (and its own column's internal ones). The longest
// matching prefix counts.
var columns = []struct {
	prefix string
	column int
}{
	{"unit", 0},
	{"finding", 0}, // what is wrong; knows nothing of what can be
	{"docs", 0},    // a document that the page shows
	{"cluster", 1},
	{"coll", 1},
	{"schedule", 2},
	{"workload/pipeline", 1}, // orders and times; knows nothing of models or clusters
	{"hardware", 2},
	{"internal/csvtable", 0}, // reading catalogues; knows nothing of the model
	{"internal/lines", 0},    // reading text; knows nothing of the model
	{"internal/yamldoc", 0},
	{"internal/unpack", 2}, // opening archives within a question's budget
	{"internal/kube", 1},   // pods of a Kubernetes cluster, asked of its API server
	{"internal/switchtree", 2},
	{"nccl", 3},
	{"result", 2},
	{"result/diff", 4}, // of sweeps, traces and maps
	{"result/trace", 3},
	{"workload", 2},
	{"plan/campaign", 1},
	{"internal/fair", 0},
	{"internal/shm", 0},
	{"internal/reduce", 2},
	{"sim", 3},
	{"predict", 4},
	{"engine", 3},
	{"engine/ranks", 4},
	{"engine/device", 3},        // what busbar-gpu is asked
	{"engine/device/native", 4}, // what it answers with: the vendor's libraries
	{"engine/bench", 4},
	{"engine/bench/gpu", 6},
	{"engine/health", 6}, // what a node says of itself
	{"result/pairs", 3},
	{"internal/nicstat", 0}, // counters of drivers, asked of the kernel
	{"internal/counter", 0}, // what counters mean; knows nothing of the model
	{"step", 5},
	{"plan", 6},
	{"launch", 8},
	{"launch/tuner", 5},
	{"launch/profiler", 0},
	{"calibrate/truth", 6},
	{"lab", 5},
	{"calibrate", 8},
	{"input/internal", 3},
	{"input/", 4},
	{"input/joblog", 5},   // logs of jobs, in which NCCL speaks too
	{"input/snapshot", 5}, // an archive of what input/sysfs reads
	{"input", 6},
	{"input/live", 8}, // runs the tools of this machine
	{"internal/failure", 0},
	{"internal/natural", 0},
	{"internal/words", 0},
	{"internal/lazyre", 0},
	{"internal/outfile", 1},
	{"measure", 9}, // members, means and sweeps; knows no questions
	{"query", 10},
	{"doctor/audit", 5},
	{"doctor/traffic", 5},
	{"doctor/hang", 7},
	{"doctor/rates", 6},
	{"internal/texttab", 5},
	{"internal/svg", 5},
	{"report", 11},
	{"internal/keywords", 0},
	{"internal/alike", 0},
	{"internal/stats", 0},
	{"doctor/told", 2}, // what was tried, and whether it helped; knows texts alone
	{"doctor/cause", 3},
	{"doctor/evidence", 8},
	{"doctor", 9},
	{"fleet/health", 4},
	{"fleet", 5}, // the words; carried by fleet/bus, spoken by fleet/agent and fleet/hub
	{"fleet/bus", 6},
	{"fleet/agent", 8},
	{"fleet/hub", 8},
	{"fleet/client", 6},
	{"fleet/nvsentinel", 1}, // its preflight checks
	{"ask", 12},             // the registry of questions
	{"web", 13},
	{"web/mcp", 13},      // the Model Context Protocol
	{"fleet/server", 14}, // the page and the fleet put together
	{"cmd/", 15},
	{"internal/test", 15},
	{"internal/test/synth", 6}, // synthetic test data, made by the model; knows none of the readers
	{"internal/osdep", 0},      // what Unix and Windows do differently
	{"internal/memlimit", 1},
	{"internal/rules", 14},
}

// reserved lists imports that only some packages may have, with the reason.
var reserved = []struct {
	path, reason string
	allowed      []string
}{
	{"log/slog", "libraries return errors and warnings; only commands log", []string{"cmd/"}},
	{
		"net/http", "the model does not serve",
		[]string{"cmd/", "web", "internal/kube", "fleet/client", "fleet/hub", "fleet/nvsentinel", "fleet/server"},
	},
	{
		"os/exec", "only the command starts other programs, and who starts ranks",
		[]string{"cmd/", "engine/ranks", "input/live", "internal/test/"},
	},
	{"flag", "only commands have flags", []string{"cmd/", "internal/test/"}},
	{
		"unsafe", "only memory shared with the kernel or assembly needs it",
		[]string{"engine", "internal/nicstat", "internal/reduce"},
	},
	{
		"github.com/ebitengine/purego", "it makes a program dynamic; the main binary is static",
		[]string{"engine/device/native"},
	},
	{
		"busbar.dev/engine/device/native", "only busbar-gpu loads the vendor's libraries",
		[]string{"cmd/busbar-gpu", "engine/device/native"},
	},
	{"github.com/goccy/go-yaml", "YAML is read by internal/yamldoc; tests compare it with this", nil},
	{"github.com/alecthomas/kong", "only the command parses command lines", []string{"cmd/"}},
}

type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Imports    []string
	GoFiles    []string
	Module     *struct{ Path, Dir string }
	Standard   bool
}

// everything is the packages of the module, listed once for all rules.
var everything = sync.OnceValues(func() ([]pkg, error) { return list("./...") })

func all(t *testing.T) []pkg {
	t.Helper()
	list, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func list(args ...string) ([]pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	var found []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
}

func column(path string) int {
	best, col := -1, -1
	for _, c := range columns {
		exact := !strings.HasSuffix(c.prefix, "/") && path == c.prefix
		under := strings.HasPrefix(path, strings.TrimSuffix(c.prefix, "/")+"/")
		if (exact || under && c.prefix != "input") && len(c.prefix) > best {
			best, col = len(c.prefix), c.column
		}
	}
	return col
}

func TestImportsRunLeftwards(t *testing.T) {
	for _, p := range all(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		from := column(path)
		if from < 0 {
			t.Errorf("%s has no column; give it one in %s and in ARCHITECTURE.md", path, "internal/rules")
			continue
		}
		for _, imp := range p.Imports {
			own, ok := strings.CutPrefix(imp, module+"/")
			if !ok {
				continue
			}
			to := column(own)
			sibling := to == from && strings.Contains(own, "internal/")
			if to >= from && !sibling {
				t.Errorf("%s (column %d) imports %s (column %d): data flows one way", path, from, own, to)
			}
		}
	}
}

func TestReservedImports(t *testing.T) {
	for _, p := range all(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			for _, r := range reserved {
				if imp != r.path && !strings.HasPrefix(imp, r.path+"/") {
					continue
				}
				if !slices.ContainsFunc(r.allowed, func(a string) bool { return strings.HasPrefix(path, a) }) {
					t.Errorf("%s imports %s: %s", path, imp, r.reason)
				}
			}
			core := path == "unit" || path == "cluster" || path == "coll" || path == "schedule"
			if core && strings.Contains(imp, ".") && !strings.HasPrefix(imp, module+"/") {
				t.Errorf("%s imports %s: the core uses the standard library only", path, imp)
			}
		}
	}
}

// TestTestCodeStaysOutOfPrograms holds internal/test to tests: nothing outside imports it, and so no program links it.
func TestTestCodeStaysOutOfPrograms(t *testing.T) {
	const aside = module + "/internal/test/"
	for _, p := range all(t) {
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, aside) && !strings.HasPrefix(p.ImportPath, aside) {
				t.Errorf("%s imports %s: only tests may", p.ImportPath, imp)
			}
		}
	}
}

func TestPackageNamesSayWhatTheyHold(t *testing.T) {
	for _, p := range all(t) {
		for _, part := range strings.Split(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "lib", "pkg"}, part) {
				t.Errorf("%s: %q says nothing", p.ImportPath, part)
			}
		}
	}
}

func TestEveryPackageExplainsItselfOnce(t *testing.T) {
	for _, p := range all(t) {
		var with []string
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil,
				parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != "" {
				with = append(with, f)
			}
		}
		if len(with) != 1 {
			t.Errorf("%s: %d package comments (%v), want one", p.ImportPath, len(with), with)
		}
	}
}

// TestLinkedModules keeps the list of what the binary is made of in the tree, so
// that a new dependency shows in review.
func TestLinkedModules(t *testing.T) {
	linked, err := list("-deps", "./cmd/busbar")
	if err != nil {
		t.Fatal(err)
	}
	var mods []string
	for _, p := range linked {
		if p.Module != nil && p.Module.Path != module && !slices.Contains(mods, p.Module.Path) {
			mods = append(mods, p.Module.Path)
		}
	}
	slices.Sort(mods)
	got := strings.Join(mods, "\n") + "\n"
	if *update {
		if err := os.WriteFile("linked.txt", []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("linked.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("linked modules changed (go test ./internal/rules -update, and say why in the commit):\n%s", got)
	}
}
