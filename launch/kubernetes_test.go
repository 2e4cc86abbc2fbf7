package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// below is a job on hosts of two leaves, in an order.
func below(t testing.TB, names string, placeholder bool, order ...int) *launch.Plan {
	t.Helper()
	f, err := clusterfile.Read("c", strings.NewReader(fmt.Sprintf(`
name: leaf-spine
types:
  node:
    gpus: 2 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - hosts: %s
    type: node
network:
  nodes_per_leaf: 2
`, names)))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	var l nccl.Layout
	for _, h := range order {
		for _, g := range c.TypeOf(h).Of(cluster.GPU) {
			l = append(l, nccl.Rank{Host: h, GPU: g})
		}
	}
	m, err := workload.Find("gpt2-xl")
	if err != nil {
		t.Fatal(err)
	}
	s, err := workload.Split{}.On(len(l))
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Split: s, Seq: 1024, MicroBatch: 1, GlobalBatch: int64(len(l)), Precision: "bf16", Recompute: workload.None,
		Kernels: workload.Fused,
	}
	p, err := launch.New(c, l, nccl.Newest, j, nil, placeholder)
	if err != nil {
		t.Fatal(err)
	}
	p.Made, p.Job.Step = "busbar plan …", 1
	return p
}

func fileOf(t testing.TB, p *launch.Plan, name string) (string, string) {
	t.Helper()
	files, left, err := p.Files("/shared/run")
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(files, func(f launch.File) bool { return f.Name == name }); i >= 0 {
		return string(files[i].Text), ""
	}
	for _, l := range left {
		if l.Name == name {
			return "", l.Reason
		}
	}
	t.Fatalf("no word of %s", name)
	return "", ""
}

// The manifests are what they were; the module in schema holds the same files against the types of Kubernetes and
// JobSet themselves.
func TestManifests(t *testing.T) {
	for golden, p := range map[string]*launch.Plan{
		"named":       below(t, "gpu[1-3]", false, 2, 1, 0),
		"placeholder": below(t, "node[0-3]", true, 0, 1, 2, 3),
	} {
		for _, name := range []string{"job.yaml", "jobset.yaml"} {
			got, reason := fileOf(t, p, name)
			if reason != "" {
				t.Errorf("no %s: %s", name, reason)
			}
			file := filepath.Join("testdata", "manifests", golden+"-"+name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; go test ./launch -update, look at the difference, and go test in schema:\n%s", file,
					cmp.Diff(string(want), got))
			}
		}
	}
	if _, reason := fileOf(t, below(t, "gpu[1-4]", false, 0, 2, 1, 3), "jobset.yaml"); !strings.Contains(reason,
		"comes back to a leaf") {
		t.Errorf("an order that comes back to a leaf: %q", reason)
	}
	if _, reason := fileOf(t, below(t, "gpu[1-4]", false, 0, 1), "jobset.yaml"); !strings.Contains(reason,
		"below one leaf") {
		t.Errorf("one leaf: %q", reason)
	}
}

// Hosts that YAML would take for something else stay names.
func TestManifestNames(t *testing.T) {
	p := below(t, "gpu[1-4]", false, 0, 1, 2, 3)
	p.Nodes = []launch.Nodes{{Hosts: "1e3,null,yes,0x10", GPUs: []int{0, 1}}}
	p.Job.Model = "on"
	for _, name := range []string{"job.yaml", "jobset.yaml"} {
		text, _ := fileOf(t, p, name)
		for _, doc := range strings.Split(text, "\n---\n") {
			var x any
			if err := yaml.Unmarshal([]byte(doc), &x); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			walk(t, name, x, "")
		}
	}
}

// walk finds names and values of other kinds than text.
func walk(t *testing.T, file string, x any, key string) {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			walk(t, file, v, k)
		}
	case []any:
		for _, v := range x {
			walk(t, file, v, key)
		}
	case string:
	default:
		if slices.Contains([]string{"name", "values", "value", "args", "command", "job-name", "subdomain"}, key) {
			t.Errorf("%s: %s: %v is a %T; expected text", file, key, x, x)
		}
	}
}

// A host below the same leaf is as good for a rank; one below another is not.
func TestAsGood(t *testing.T) {
	p := below(t, "gpu[1-4]", false, 0, 1, 2, 3)
	at, err := p.Seat(3) // gpu2
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"gpu1": true, "GPU2.example": true, "gpu3": false, "gpu9": false} {
		if got := p.AsGood(at, name); got != want {
			t.Errorf("%s for a rank of %s: %v", name, at.Host, got)
		}
	}
}

// Every file that can be written has its line, and what is not there its reason.
func TestReadme(t *testing.T) {
	for _, p := range []*launch.Plan{below(t, "gpu[1-4]", false, 0, 1, 2, 3), planned(t, "tp=2,pp=2,zero=1,sp=1")} {
		files, left, err := p.Files("/d")
		if err != nil {
			t.Fatal(err)
		}
		readme, err := p.Readme(files, left)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.Contains(string(readme.Text), "\n"+f.Name+" ") {
				t.Errorf("%s is not in\n%s", f.Name, readme.Text)
			}
		}
		for _, l := range left {
			if !strings.Contains(string(readme.Text), "\n"+l.Name+" ") || !strings.Contains(string(readme.Text), l.Reason) {
				t.Errorf("%s is not in\n%s", l.Name, readme.Text)
			}
		}
	}
}
