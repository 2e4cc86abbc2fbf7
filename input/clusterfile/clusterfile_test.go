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

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
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

func TestSpellings(t *testing.T) {
	for text, want := range map[string]cluster.Summary{
		`nodes: [{hosts: "a[1-2]", type: dgx-h100}]`: {
			Nodes: 2, GPUs: 16, NICs: 16,
		},
		`{"nodes":[{"hosts":"a[1-2]","type":"dgx-h100"}]}`: {Nodes: 2, GPUs: 16, NICs: 16},
		"types:\n  x: {gpus: 8 × A100-80GB, nics: 2 x 200 Gb/s}\nnodes:\n  - hosts: a\n    type: x\n": {
			Nodes: 1, GPUs: 8, NICs: 2,
		},
		"types:\n  x: {gpus: 8 H100, nics: 8 NDR}\nnodes:\n  - hosts: a\n    type: x\n": {
			Nodes: 1, GPUs: 8, NICs: 8,
		},
	} {
		s := read(t, text).Summary()
		if s.Nodes != want.Nodes || s.GPUs != want.GPUs || s.NICs != want.NICs {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

// A file that does not mention NVLink means the boards these GPUs come on.
func TestUsualNVLink(t *testing.T) {
	for gpus, want := range map[string]string{
		"8 x H100": "NV18", "8 x A100-80GB": "NV12", "4 x A100-SXM4-40GB": "NV4", "8 x L40S": "NODE", "8 x MI300X": "XGMI",
	} {
		c := read(t, "types:\n  x: {gpus: "+gpus+", sockets: 1}\nnodes:\n  - hosts: a\n    type: x\n")
		if got := c.Types[0].Matrix().Class[0][1]; got != want {
			t.Errorf("%s: gpu0–gpu1 is %s, want %s", gpus, got, want)
		}
	}
}

// A network that does not mention rails has those of the machines in it.
func TestPresetRails(t *testing.T) {
	c := read(t, "nodes:\n  - hosts: a[1-8]\n    type: dgx-h100\nnetwork: {kind: infiniband, speed: NDR, "+
		"oversubscription: 2}\n")
	if c.Network.Rails != 8 {
		t.Errorf("%d rails, want the preset's 8", c.Network.Rails)
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
	odd.Types[0].Pairs = []cluster.Pair{{
		A: 4, B: 5, Rate: cluster.FromMeasured(unit.Rate(2.5e10), "p2p (bridge): x"), P2P: cluster.No, Why: "CNS",
	}}
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

// Where no node is known (switches only, benchmarks only) the file says so.
func TestNoNodesReadsBack(t *testing.T) {
	c := &cluster.Cluster{Name: "fabric", Network: cluster.Network{
		Kind:     cluster.InfiniBand,
		Switches: []cluster.Switch{{Name: "leaf", Rail: -1}, {Name: "spine", Rail: -1}},
		Links:    []cluster.NetLink{{A: cluster.AtSwitch(0, 1), B: cluster.AtSwitch(1, 1)}},
	}}
	var y bytes.Buffer
	if err := Write(&y, c); err != nil {
		t.Fatal(err)
	}
	j, err := json.MarshalIndent(c.Document(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{y.String(), string(j)} {
		if !Match([]byte(text)) {
			t.Errorf("not recognised:\n%s", text)
		}
		if got := read(t, text); len(got.Hosts) != 0 || len(got.Network.Switches) != 2 || len(got.Network.Links) != 1 {
			t.Errorf("%d hosts, %d switches, %d links from:\n%s", len(got.Hosts), len(got.Network.Switches),
				len(got.Network.Links), text)
		}
	}
	if got := read(t, "version: 1\nnodes: []\n"); len(got.Hosts) != 0 {
		t.Errorf("%d hosts of none", len(got.Hosts))
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"nodes:\n  - hosts: a[1-\n    type: dgx-h100\n", "test.yaml:2: nodes[0].hosts:"},
		{"nodes:\n  - hosts: a\n    type: dgx-h1000\n", "test.yaml:3: nodes[0].type: no type \"dgx-h1000\""},
		{
			"nodes:\n  - hosts: a\n    typ: dgx-h100\n",
			"test.yaml:3: nodes[0].typ: unknown key; did you mean type? known: hosts, type, count",
		},
		{"types:\n  x: {gpus: 8 x H100}\nnodes:\n  - hosts: a,a\n    type: x\n", "listed twice"},
		{"types:\n  x: {gpus: 8 x H900}\nnodes:\n  - hosts: a\n    type: x\n", "test.yaml:2: types.x.gpus: no GPU \"H900\""},
		{"types:\n  x: {gpus: A100 x 4}\nnodes:\n  - hosts: a\n    type: x\n", "the count comes first: 4 x A100"},
		{
			"types:\n  x: {gpus: 4 x A100-SXM4-90GB}\nnodes:\n  - hosts: a\n    type: x\n",
			"`busbar list hardware gpu` lists them",
		},
		{"types:\n  x: {nics: HDR x 2}\nnodes:\n  - hosts: a\n    type: x\n", "the count comes first: 2 x HDR"},
		{"types:\n  x: {nics: 1 x 400GB/s}\nnodes:\n  - hosts: a\n    type: x\n", "Gb/s (bits) meant?"},
		{"types:\n  x: {nics: 1 x HDR infiniban}\nnodes:\n  - hosts: a\n    type: x\n", "is no network"},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, lanes: -1}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].lanes: -1; expected",
		},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, lanes: 99999999999}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].lanes: 9.9999999999e+10; expected",
		},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, max_lanes: 2000}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].max_lanes: 2000; expected",
		},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, gts: -7}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].gts: -7; expected",
		},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, max_gts: 1e300}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].max_gts: 1e+300; expected",
		},
		{
			"types:\n  x:\n    devices:\n      - {kind: gpu, name: g0}\n      - {kind: gpu, name: g1}\n    links:\n      - " +
				"{a: g0, b: g1, kind: nvlink, lanes: 0}\nnodes:\n  - {hosts: a, type: x}\n",
			"test.yaml:7: types.x.links[0].lanes: 0; leave it out",
		},
		{"nodes:\n  - hosts: a{1..4}\n    type: dgx-h100\n", "square brackets"},
		{"nodes:\n  - hosts: a[1-4]\n    type: dgx-h100\nnetwork: {kind: infiniban}\n", "network.kind"},
		{"nodes:\n  - hosts: a[1-4]\n    type: dgx-h100\nnetwork: {oversubscription: 0}\n", "network.oversubscription"},
		{"node:\n  - hosts: a[1-4]\n    type: dgx-h100\n", "did you mean nodes"},
		{"nodes:\n  - host: a[1-4]\n    type: dgx-h100\n", "did you mean hosts"},
		{"types:\n  x: {nics: 8 x 400}\nnodes:\n  - hosts: a\n    type: x\n", "nics:"},
		{"types:\n  x: {nics: 2 x 400}\nnodes:\n  - hosts: a\n    type: x\n", "nics:"},
		{"types:\n  x: {gpus: 8 x L40S, nvlink: switch}\nnodes:\n  - hosts: a\n    type: x\n", "has none"},
		{"types:\n  x: {gpus: -1 x H100}\nnodes:\n  - hosts: a\n    type: x\n", "gpus:"},
		{"nodes:\n  - count: 0\n    type: dgx-h100\n", "expected hosts"},
		{"nodes:\n  - count: 99999999\n    type: dgx-h100\n", "count from 1 to"},
		{"version: 7\nnodes:\n  - hosts: a\n", "use a newer one"},
		{"nodes:\n  - hosts: a\n    type: dgx-h100\nnetwork:\n  oversubscription: -2\n", "-2"},
		{
			"nodes:\n  - hosts: n[1-2]\n    type: dgx-h100\nnetwork:\n  links:\n    - a: {switch: s}\n      b: {hosts: n1}\n",
			"test.yaml:6: network.links[0]: no switch \"s\"",
		},
		{"types:\n  x:\n    devices:\n      - {kind: gpu, name: a}\n      - {kind: gpu, name: b, parent: c}\nnodes:\n  - " +
			"hosts: a\n    type: x\n", "test.yaml:5: types.x.devices[1].parent: no device \"c\""},
		{"nodes:\n  - hosts: a\n    type: dgx-h100\nnetwork:\n  rails: -1\n", "test.yaml:4: network: -1 rails"},
		{
			"nodes:\n  - hosts: a\n    type: dgx-h100\nnetwork:\n  reduction: perhaps\n",
			"test.yaml:5: network.reduction: answer \"perhaps\"",
		},
		{"nodes:\n  - hosts: a\n  - hosts: b\n    hosts: c\n", "test.yaml:4: nodes[1].hosts: given twice; first on line 3"},
		{"nodes:\n  - count: 010\n", "test.yaml:2: nodes[0].count: \"010\"; expected a whole number"},
		{"nodes:\n\t- hosts: a\n", "test.yaml:2: a tab in the indentation"},
		{"nodes:\n  - hosts: a\n---\nnodes: []\n", "test.yaml:4: 2 YAML documents"},
		{"# nothing\n", "test.yaml:1: nodes: no nodes"},
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
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
		readertest.Check(t, frag)
		cluster.NewRoutes(cluster.Join(frag))
		var first, second bytes.Buffer
		if err := Write(&first, &frag.Cluster); err != nil {
			t.Fatal(err)
		}
		again, err := Read("again", bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, &first)
		}
		if err := Write(&second, &again.Cluster); err != nil || first.String() != second.String() {
			t.Fatalf("%v; written, read and written again:\n%s", err, cmp.Diff(first.String(), second.String()))
		}
	})
}

func BenchmarkTenThousandNodes(b *testing.B) {
	text := "nodes:\n  - hosts: a[00001-05000]\n    type: dgx-h100\n  - hosts: b[00001-05000]\n    type: dgx-a100\n" +
		"network:\n  kind: infiniband\n  rails: 8\n"
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
			if r.Path(a, z).Class.Type == cluster.Apart {
				b.Fatal("no path")
			}
		}
	}
}
