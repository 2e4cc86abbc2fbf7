package k8s

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

func FuzzRead(f *testing.F) {
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, writeBack,
		all()[:1500],
		obj("n1", "@nvidia.com/gpu=8", "nvidia.com/gpu.product=H100", "nvidia.com/gpu.memory=81559", "@rdma/hca=8",
			awsLayer+"1=a", awsLayer+"2=b"),
		`{"apiVersion":"v1","items":[{"kind":"Node","metadata":{"name":"a","labels":{"network.topology.nvidia.com/leaf":"l"}}}],"kind":"List"}`,
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: t}\nspec:\n  levels: [{nodeLabel: a/b}]\n"+
			"---\napiVersion: batch/v1\nkind: Job\nmetadata: {annotations: {kueue.x-k8s.io/podset-required-topology: a/b}}\n",
		"log\napiVersion: v1\nkind: Node\nmetadata:\n  name: x\nend of log\n")
}

// writeBack writes labels of what was read, and reads those.
func writeBack(t *testing.T, frag *cluster.Fragment) {
	for _, h := range frag.Hosts {
		if h.Name == "" {
			t.Fatal("a node without a name")
		}
	}
	if len(frag.Hosts) == 0 || len(frag.Hosts) > 1000 {
		return
	}
	var b bytes.Buffer
	if WriteLabels(&b, cluster.Join(frag)) != nil || !strings.Contains(b.String(), "kind: Node") {
		return
	}
	if _, err := Read("back", bytes.NewReader(b.Bytes())); err != nil && !strings.Contains(err.Error(), "below itself") {
		t.Fatalf("%v\n%s", err, b.String())
	}
}

// Nodes as large as real ones, with the parts that are skipped.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var b strings.Builder
	b.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	filler := strings.Repeat(
		`{"names":["registry.example/some/image@sha256:0123456789abcdef","registry.example/some/image:v1"],"sizeBytes":123456789},`, 50)
	for i := range 5000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n%d","labels":{"network.topology.nvidia.com/leaf":"l%d","network.topology.nvidia.com/spine":"s%d","nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.count":"8"}},`+
			`"status":{"capacity":{"nvidia.com/gpu":"8"},"images":[%s{}]}}`, i, i/32, i/512, filler)
	}
	b.WriteString("]}")
	start := time.Now()
	f, err := Read("x", strings.NewReader(b.String()))
	if err != nil || len(f.Hosts) != 5000 || len(f.Types) != 1 || len(f.Network.Switches) != 157+10 {
		t.Fatalf("%d hosts, %d types, %d switches, %v", len(f.Hosts), len(f.Types), len(f.Network.Switches), err)
	}
	t.Logf("%d MB of nodes in %v", b.Len()>>20, time.Since(start))
	noise := strings.Repeat("apiVersion: kind: Nodes [{ kind : x\n\x00\x01{\"a\"", 16<<20/44)
	start = time.Now()
	if _, err := Read("x", strings.NewReader(noise)); err == nil {
		t.Error("noise was read")
	}
	if Match([]byte(noise)) {
		t.Error("noise was recognised")
	}
	t.Logf("noise turned away in %v", time.Since(start))
}

func FuzzFreeNodes(f *testing.F) {
	f.Add(all()[:1500])
	f.Add(`{"kind":"List","items":[{"kind":"Node","metadata":{"name":"a"},"status":{"allocatable":{"nvidia.com/gpu":"8"}}},{"kind":"Pod","spec":{"nodeName":"a","containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		names, err := FreeNodes(text)
		if err != nil && len(names) > 0 {
			t.Errorf("%d nodes and %v", len(names), err)
		}
	})
}
