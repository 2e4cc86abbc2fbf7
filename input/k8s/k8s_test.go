package k8s

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// What each real manifest says, written down by hand from the files.
var manifests = map[string]string{
	"kueue-tas-gpu-queues.yaml": "no nodes in it; topology default has the levels cloud.provider.com/topology-block > " +
		"cloud.provider.com/topology-rack > kubernetes.io/hostname",
	"kueue-tas-queues.yaml": "no nodes in it; topology default has the levels cloud.provider.com/topology-block > " +
		"cloud.provider.com/topology-rack > kubernetes.io/hostname",
	"kueue-tas-job-required.yaml":  "no nodes in it; give the nodes",
	"kueue-jobset-tas-sliced.yaml": "no nodes in it; give the nodes",
	"kueue-multikueue-worker.yaml": "no nodes in it; topology default has the levels kubernetes.io/hostname",
}

func TestCorpus(t *testing.T) {
	read := 0
	for _, e := range corpus.Index(t, "Kubernetes topology manifests") {
		if strings.Contains(e.File, "kind-cluster") {
			continue // the configuration of a test's cluster, which names no nodes
		}
		want, ok := manifests[e.File[strings.LastIndexByte(e.File, '/')+1:]]
		if !ok {
			t.Errorf("%s: nothing is written down for it", e.File)
			continue
		}
		read++
		data := corpus.Open(t, e.File)
		if !Match(data) {
			t.Errorf("%s: not recognised", e.File)
		}
		f, err := Read(e.File, bytes.NewReader(data))
		if err != nil {
			t.Error(err)
			continue
		}
		if len(f.Hosts) != 0 || !strings.Contains(readertest.Warnings(f), want) {
			t.Errorf("%s: %d hosts, no warning %q in\n%s", e.File, len(f.Hosts), want, readertest.Warnings(f))
		}
		if len(f.Warnings) != 1 {
			t.Errorf("%s: warnings\n%s", e.File, readertest.Warnings(f))
		}
	}
	if read != 5 {
		t.Errorf("%d files read; want 5", read)
	}
}

func TestMatchNothingElse(t *testing.T) {
	for _, e := range corpus.Index(t) {
		if e.Format != "Kubernetes topology manifests" && Match(corpus.Open(t, e.File)) {
			t.Errorf("%s: recognised", e.File)
		}
	}
	for _, s := range []string{
		"kind: Node\n", "apiVersion: v1\nkind: Pod\n", "apiVersion: v1\nkind: NodePool\n", "", "apiVersion kind",
	} {
		if Match([]byte(s)) {
			t.Errorf("%q: recognised", s)
		}
	}
	for _, s := range []string{"apiVersion: v1\nkind: Node\n", `{"apiVersion":"v1","kind":"Node"}`, `{"apiVersion": "v1", "items": [], "kind": "NodeList"}`, "apiVersion: v1\nkind: \"Node\"\r\n"} {
		if !Match([]byte(s)) {
			t.Errorf("%q: not recognised", s)
		}
	}
}

// obj writes a Node as kubectl does. Synthetic, after the labels that the GPU
// operator, topograph and the clouds document.
func obj(name string, labels ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Node\nmetadata:\n  annotations:\n    a: b\n  name: %s\n  labels:\n    "+
		"kubernetes.io/hostname: %s\n", name, name)
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		if !strings.HasPrefix(k, "@") {
			fmt.Fprintf(&b, "    %s: %q\n", k, v)
		}
	}
	b.WriteString("status:\n  images:\n  - names: [x]\n  capacity:\n    cpu: \"96\"\n")
	for _, l := range labels {
		if k, v, _ := strings.Cut(l, "="); strings.HasPrefix(k, "@") {
			fmt.Fprintf(&b, "    %s: %q\n", k[1:], v)
		}
	}
	return b.String()
}

func stream(objs ...string) string { return strings.Join(objs, "---\n") }

const nv = "network.topology.nvidia.com/"

func TestPlaces(t *testing.T) {
	tests := []struct{ name, in, want, warn string }{
		{"topograph now", stream(obj("n1", nv+"accelerator=nvl1", nv+"leaf=l1", nv+"spine=s1", nv+"core=c"),
			obj("n2", nv+"accelerator=nvl1", nv+"leaf=l2", nv+"spine=s1", nv+"core=c"),
			obj("n3", nv+"accelerator=nvl2", nv+"leaf=l3", nv+"spine=s2", nv+"core=c")), `
			l1 tier=0 hosts=n1
			s1 tier=1 under=l[1-2]
			c tier=2 under=s[1-2]
			l2 tier=0 hosts=n2
			l3 tier=0 hosts=n3
			s2 tier=1 under=l3
			nvl1 group tier=0 hosts=n[1-2]
			nvl2 group tier=0 hosts=n3`, ""},
		{"topograph 0.1", stream(obj("n1", nv+"block=b1", nv+"spine=s1", nv+"datacenter=d"),
			obj("n2", nv+"block=b1", nv+"spine=s1", nv+"datacenter=d")), `
			b1 tier=0 hosts=n[1-2]
			s1 tier=1 under=b1
			d tier=2 under=s1`, ""},
		{"topograph by tier", stream(obj("n1", nv+"tier-0=l1", nv+"tier-1=s1", nv+"tier-3=x"),
			obj("n2", "fabric.topograph.run/tier-0=l2", "fabric.topograph.run/tier-1=s1", "accelerator.topograph.run/domain=d",
				"accelerator.topograph.run/sub-domain=e")), `
			l1 tier=0 hosts=n1
			s1 tier=1 under=l[1-2]
			x tier=3 under=s1
			l2 tier=0 hosts=n2
			d group tier=1 under=e
			e group tier=0 hosts=n2`, ""},
		{"AWS, three and four layers", stream(obj("n1", awsLayer+"1=nn-a", awsLayer+"2=nn-b", awsLayer+"3=nn-c"),
			obj("n2", awsLayer+"1=nn-a", awsLayer+"2=nn-b", awsLayer+"3=nn-d", "topology.kubernetes.io/region=us",
				"topology.kubernetes.io/zone=usa")), `
			nn-c tier=0 hosts=n1
			nn-b tier=1 under=nn-c,nn-d
			nn-a tier=2 under=nn-b
			nn-d tier=0 hosts=n2
			us group tier=1 under=usa
			usa group tier=0 hosts=n2`, ""},
		{"GCE", stream(obj("n1", "cloud.google.com/gce-topology-block=b", "cloud.google.com/gce-topology-subblock=s1",
			"cloud.google.com/gce-topology-host=h1"),
			obj("n2", "cloud.google.com/gce-topology-block=b", "cloud.google.com/gce-topology-subblock=s1")), `
			b group tier=1 under=s1
			s1 group tier=0 hosts=n[1-2]`, ""},
		{"clique", stream(obj("n1", "nvidia.com/gpu.clique=uuid.7"),
			obj("n2", "nvidia.com/gpu.clique=uuid.7", nv+"accelerator=other")), `
			uuid.7 group tier=0 hosts=n1
			other group tier=0 hosts=n2`, ""},
		{"one value under two keys", obj("n1", nv+"accelerator=x", "cloud.provider.com/topology-rack=x", nv+"leaf=x"), `
			x tier=0 hosts=n1
			network.topology.nvidia.com/accelerator=x group tier=0 hosts=n1
			cloud.provider.com/topology-rack=x group tier=0 hosts=n1`, ""},
		{"a leaf under two spines", stream(obj("n1", nv+"leaf=l", nv+"spine=s1"), obj("n2", nv+"leaf=l", nv+"spine=s2")), `
			l tier=0 hosts=n[1-2]
			s1 tier=1 under=l
			s2 tier=1 under=l`, "l: switch under s1 and s2"},
		{"levels of a Topology", stream("apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: t}\nspec:\n  "+
			"levels: [{nodeLabel: my/row}, {nodeLabel: my/rack}, {nodeLabel: kubernetes.io/hostname}]\n",
			obj("n1", "my/row=r", "my/rack=k"), obj("n2", "my/row=r", "my/rack=k")), `
			r group tier=1 under=k
			k group tier=0 hosts=n[1-2]`, "topology t has the levels my/row > my/rack > kubernetes.io/hostname"},
		{"twice", stream(obj("n1", nv+"leaf=a"), obj("n1", nv+"leaf=b")), "a tier=0 hosts=n1", "n1: listed again"},
	}
	for _, tt := range tests {
		f, err := Read("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := readertest.Shape(&f.Cluster); got != readertest.Flush(tt.want) {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, readertest.Flush(tt.want))
		}
		if w := readertest.Warnings(f); !strings.Contains(w, tt.warn) || tt.warn == "" && w != "" {
			t.Errorf("%s: warnings %q; want %q", tt.name, w, tt.warn)
		}
	}
}

func TestDevices(t *testing.T) {
	h100 := []string{
		"nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count=8", "nvidia.com/gpu.memory=81559",
		"nvidia.com/gpu.compute.major=9", "nvidia.com/gpu.compute.minor=0", "@nvidia.com/gpu=8",
	}
	tests := []struct{ name, in, want, warn string }{
		{"NVIDIA", obj("n1", h100...), "NVIDIA-H100-80GB-HBM3 ×8 79.6 GiB nvidia sm90 nics 0", ""},
		{"AMD", obj("n1", "@amd.com/gpu=8", "amd.com/gpu.product-name=MI300X"), "MI300X ×8 0 amd sm0 nics 0", ""},
		{
			"capacity only", obj("n1", "@nvidia.com/gpu=4", "cloud.google.com/gke-accelerator=nvidia-h100-80gb"),
			"nvidia-h100-80gb ×4 0 nvidia sm0 nics 0", "",
		},
		{
			"EFA", obj("n1", append(h100, "@vpc.amazonaws.com/efa=32", "node.kubernetes.io/instance-type=p5.48xlarge")...),
			"NVIDIA-H100-80GB-HBM3 ×8 79.6 GiB nvidia sm90 nics 32 efa", "",
		},
		{
			"RDMA", obj("n1", append(h100, "@rdma/hca_a=4", "@rdma/hca_b=4")...),
			"NVIDIA-H100-80GB-HBM3 ×8 79.6 GiB nvidia sm90 nics 8", "",
		},
		{
			"shared RDMA", obj("n1", append(h100, "@rdma/hca_shared_devices_a=1k")...),
			"NVIDIA-H100-80GB-HBM3 ×8 79.6 GiB nvidia sm90 nics 0", "rdma/hca_shared_devices_a",
		},
		{
			"time-slicing", obj("n1", "nvidia.com/gpu.product=A100-SHARED", "nvidia.com/gpu.count=2",
				"nvidia.com/gpu.replicas=4", "@nvidia.com/gpu=8"), "A100 ×2 0 nvidia sm0 nics 0",
			"capacity nvidia.com/gpu is 8, label nvidia.com/gpu.count 2; kept the label",
		},
		{
			"MIG", obj("n1", "nvidia.com/gpu.product=A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu.count=7", "@nvidia.com/gpu=7"),
			"A100-SXM4-80GB ×7 0 nvidia sm0 nics 0", "7 MIG slices (1g.10gb)",
		},
		{
			"contradiction", obj("n1", "nvidia.com/gpu.count=8", "@nvidia.com/gpu=7"), " ×8 0 nvidia sm0 nics 0",
			"capacity nvidia.com/gpu is 7",
		},
		{"absurd", obj("n1", "@nvidia.com/gpu=-1"), "none", "nvidia.com/gpu is -1"},
		{"huge", obj("n1", "@nvidia.com/gpu=99999999999999999999"), "none", "not counted"},
	}
	for _, tt := range tests {
		f, err := Read("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := "none"
		if ty := f.TypeOf(0); ty != nil {
			g := ty.Devices[ty.Of(cluster.GPU)[0]]
			mem := "0"
			if g.GPU.Memory.Known() {
				mem = fmt.Sprintf("%.1f GiB", float64(g.GPU.Memory.Value)/(1<<30))
			}
			got = fmt.Sprintf("%s ×%d %s %s sm%d nics %d", g.Model.Value, ty.Count(cluster.GPU), mem, g.GPU.Vendor, g.GPU.SM,
				ty.Count(cluster.NIC))
			if n := ty.Of(cluster.NIC); len(n) > 0 {
				got = strings.TrimSpace(got + " " + string(ty.Devices[n[0]].NIC.Kind))
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
		if w := readertest.Warnings(f); !strings.Contains(w, tt.warn) || tt.warn == "" && w != "" {
			t.Errorf("%s: warnings %q; want %q", tt.name, w, tt.warn)
		}
	}
}

// All the ways in which kubectl and people hand nodes over.
func TestForms(t *testing.T) {
	list := "apiVersion: v1\nitems:\n"
	for _, n := range []string{"n1", "n2"} {
		for i, l := range strings.Split(strings.TrimSpace(obj(n, nv+"leaf=l")), "\n") {
			list += []string{"  ", "- "}[max(0, 1-i)] + l + "\n"
		}
	}
	list += "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	js := `{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"` + nv + `leaf":"l"},"managedFields":[{"a":{}}]},"status":{"capacity":{"nvidia.com/gpu":"8"}}},` +
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2","labels":{"` + nv + `leaf":"l"}}}],"kind":"List"}`
	for name, in := range map[string]string{
		"list": list, "json": js, "documents": stream(obj("n1", nv+"leaf=l"), obj("n2", nv+"leaf=l")),
		"windows": strings.ReplaceAll(list, "\n", "\r\n"),
	} {
		if !Match([]byte(in)) {
			t.Errorf("%s: not recognised", name)
		}
		f, err := Read("x", strings.NewReader(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := readertest.Shape(&f.Cluster); got != "l tier=0 hosts=n[1-2]\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	bomb := "apiVersion: v1\nkind: Node\na: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\n"
	for _, tt := range []struct{ name, in, want string }{
		{"bomb", bomb, `x:3: "&a [x, x, x]" is an anchor or an alias`},
		{"deep", `{"apiVersion":"v1","kind":"Node","x":` + strings.Repeat("[", 100000), "x:1: nested more than 100 deep"},
		{"cut", `{"apiVersion":"v1","kind":"NodeList","items":[{"kind":"Node"`, "x:1:"},
		{"other", "apiVersion: v1\nkind: Pod\n", "x: no Node object and no topology manifest"},
		{"nothing", "", "x: no Node object"},
		{"loop", stream(obj("n1", nv+"leaf=a", nv+"spine=b"), obj("n2", nv+"leaf=b", nv+"spine=a")), "is below itself"},
	} {
		if _, err := Read("x", strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %s", tt.name, err, tt.want)
		}
	}
	f, err := Read("x", strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {labels: {a: b}}\n"))
	if err != nil || !strings.Contains(readertest.Warnings(f), "a node without metadata.name") {
		t.Errorf("%v", err)
	}
}
