package clusterfile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/unit"
)

const ordinary = `# twelve lines for an ordinary cluster
name: alpha
types:
  trainer: {gpus: 4 x A100-SXM4-80GB, nvlink: mesh, nics: 1 x HDR infiniband, sockets: 2}
nodes:
  - hosts: gpu[001-016]
    type: trainer
  - hosts: big[1-4]
    type: dgx-h100
network:
  kind: infiniband
  oversubscription: 2
`

func read(t *testing.T, text string) *cluster.Cluster {
	t.Helper()
	if !Match([]byte(text)) {
		t.Errorf("not recognised: %.60q", text)
	}
	f, err := Read("test.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	return c
}

func TestShortForm(t *testing.T) {
	c := read(t, ordinary)
	s := c.Summary()
	if s.Nodes != 20 || s.GPUs != 16*4+4*8 || s.NICs != 16+4*8 || s.NodeTypes != 2 {
		t.Errorf("summary %+v", s)
	}
	m := c.Types[0].Matrix()
	if m.Class[0][3] != "NV4" {
		t.Errorf("gpu0–gpu3 %s, want NV4: twelve links over three peers", m.Class[0][3])
	}
	if len(c.Network.Switches) == 0 || c.Network.Oversubscription.Value != 2 {
		t.Errorf("network %+v", c.Network)
	}
}

func TestRoundTrip(t *testing.T) {
	clusters := map[string]*cluster.Cluster{"ordinary": read(t, ordinary)}
	for _, p := range hardware.Presets() {
		c, err := hardware.Preset(p.Name, 3)
		if err != nil {
			t.Fatal(err)
		}
		clusters[p.Name] = c
	}
	odd := read(t, ordinary)
	odd.Types[0].Pairs = []cluster.Pair{{A: 4, B: 5, Rate: cluster.FromMeasured(unit.Rate(2.5e10), "p2p (bridge): x"), P2P: cluster.No, Why: "CNS"}}
	odd.Types[0].Links[0].Latency = cluster.FromAssumed(unit.Micros(0.125), "why: not (really)")
	odd.Hosts[2].IDs = []cluster.Identity{{Device: "gpu0", UUID: "GPU-1"}}
	odd.Warnings = []cluster.Warning{{Source: "a.txt:3", Where: "x", Text: "says \"y\": z"}}
	clusters["odd"] = odd
	for name, c := range clusters {
		var b bytes.Buffer
		if err := Write(&b, c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !Match(b.Bytes()) {
			t.Errorf("%s: what was written is not recognised", name)
		}
		f, err := Read(name, &b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c, &f.Cluster); diff != "" {
			t.Errorf("%s does not round-trip (-want +got):\n%.3000s", name, diff)
		}
	}
}

func TestJSONReadsBack(t *testing.T) {
	c := read(t, ordinary)
	data, err := json.Marshal(c.Document())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read("x.json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &f.Cluster); diff != "" {
		t.Errorf("%.2000s", diff)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"nodes:\n  - hosts: a[1-\n    type: dgx-h100\n", "test.yaml:2: nodes[0].hosts:"},
		{"nodes:\n  - hosts: a\n    type: dgx-h1000\n", "test.yaml:3: nodes[0].type: no type \"dgx-h1000\""},
		{"nodes:\n  - hosts: a\n    typ: dgx-h100\n", "test.yaml:3:"},
		{"types:\n  x: {gpus: 8 x H100}\nnodes:\n  - hosts: a,a\n    type: x\n", "listed twice"},
		{"types:\n  x: {gpus: 8 x H900}\nnodes:\n  - hosts: a\n    type: x\n", "no GPU \"H900\""},
		{"types:\n  x: {nics: 8 x 400}\nnodes:\n  - hosts: a\n    type: x\n", "nics:"},
		{"types:\n  x: {nics: 2 x 400G}\nnodes:\n  - hosts: a\n    type: x\n", "nics:"},
		{"types:\n  x: {gpus: 8 x L40S, nvlink: switch}\nnodes:\n  - hosts: a\n    type: x\n", "has none"},
		{"types:\n  x: {gpus: -1 x H100}\nnodes:\n  - hosts: a\n    type: x\n", "gpus:"},
		{"nodes:\n  - count: 0\n    type: dgx-h100\n", "expected hosts"},
		{"nodes:\n  - count: 99999999\n    type: dgx-h100\n", "count from 1 to"},
		{"version: 7\nnodes:\n  - hosts: a\n", "use a newer one"},
		{"nodes:\n  - hosts: a\n    type: dgx-h100\nnetwork:\n  oversubscription: -2\n", "-2"},
		{"nodes:\n  - hosts: n[1-2]\n    type: dgx-h100\nnetwork:\n  links:\n    - a: {switch: s}\n      b: {hosts: n1}\n", "no switch \"s\""},
	} {
		_, err := Read("test.yaml", strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n  error %v\n  want %q", tt.text, err, tt.want)
		}
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		prev, next := string(rune('a'+i)), string(rune('b'+i))
		text += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+", ", 9), ", ") + "]\n"
	}
	text += "nodes:\n  - hosts: a\n"
	if _, err := Read("bomb.yaml", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "alias") {
		t.Errorf("error %v, want one about an alias", err)
	}
}

func TestSchemaAcceptsWhatWeWrite(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(name string, text []byte) error {
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return s.Validate(v)
	}
	if err := valid("ordinary", []byte(ordinary)); err != nil {
		t.Error(err)
	}
	for _, p := range hardware.Presets() {
		cl, err := hardware.Preset(p.Name, 2)
		if err != nil {
			t.Fatal(err)
		}
		cl.Types[0].Preset = "" // force the long form
		var b bytes.Buffer
		if err := Write(&b, cl); err != nil {
			t.Fatal(err)
		}
		if err := valid(p.Name, b.Bytes()); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if err := valid("bad", []byte("nodes:\n  - host: x\n")); err == nil {
		t.Error("the schema accepts an unknown key")
	}
}

func TestExamplesRead(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte("\n")); n >= 20 {
			t.Errorf("%s has %d lines; an ordinary cluster takes fewer than 20", f, n)
		}
		read(t, string(data))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(ordinary))
	f.Add([]byte(`{"version":1,"types":[],"nodes":[{"hosts":"a"}]}`))
	f.Add([]byte("nodes:\n  - count: 3\n    type: x\ntypes:\n  x:\n    devices:\n      - {kind: gpu, name: g}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		Match(data)
		frag, err := Read("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, ty := range frag.Types {
			if err := ty.Check(); err != nil {
				t.Errorf("%v", err)
			}
		}
		cluster.NewRoutes(cluster.Join(frag))
	})
}

func BenchmarkTenThousandNodes(b *testing.B) {
	text := "nodes:\n  - hosts: a[00001-05000]\n    type: dgx-h100\n  - hosts: b[00001-05000]\n    type: dgx-a100\nnetwork:\n  kind: infiniband\n  rails: 8\n"
	for b.Loop() {
		f, err := Read("big.yaml", strings.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		c := cluster.Join(f)
		hardware.Complete(c)
		r := cluster.NewRoutes(c)
		for i := range 10000 {
			a := cluster.Place{Host: i, Device: c.TypeOf(i).Of(cluster.GPU)[i%8]}
			z := cluster.Place{Host: (i*7919 + 13) % 10000, Device: c.TypeOf((i*7919 + 13) % 10000).Of(cluster.GPU)[(i+3)%8]}
			if r.Class(a, z).Type == cluster.Apart {
				b.Fatal("no path")
			}
		}
	}
}
