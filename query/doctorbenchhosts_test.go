package query

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// A sweep that names its hosts is predicted on these hosts: slow NICs of the cluster's first hosts are not theirs.
// Where the cluster has no such hosts, a note says which are predicted.
func TestDoctorBenchHosts(t *testing.T) {
	log, err := os.ReadFile("../docs/examples/two-nodes.log")
	if err != nil {
		t.Fatal(err)
	}
	const types = `types:
  slow: {gpus: 8 x H100-SXM5-80GB, nvlink: switch, nics: 1 x HDR infiniband}
  good: {gpus: 8 x H100-SXM5-80GB, nvlink: switch, nics: 8 x NDR infiniband}
network: {kind: infiniband}
`
	files := fstest.MapFS{
		"two.log": {Data: log},
		"mixed.yaml": {Data: []byte("nodes:\n  - {hosts: 'old[1-2]', type: slow}\n  - {hosts: 'gpu[1-2].site', type: " +
			"good}\n" + types)},
		"good.yaml": {Data: []byte("nodes:\n  - {hosts: 'gpu[1-2]', type: good}\n" + types)},
		"other.yaml": {Data: []byte("nodes:\n  - {hosts: 'old[1-2]', type: slow}\n  - {hosts: 'new[1-2]', type: good}\n" +
			types)},
		"small.yaml": {Data: []byte("nodes:\n  - {hosts: 'old[1-2]', type: good}\n  - {hosts: 'gpu[1-2]', type: half}\n" +
			types + "  \n")},
	}
	files["small.yaml"].Data = []byte(strings.Replace(string(files["small.yaml"].Data), "types:\n",
		"types:\n  half: {gpus: 4 x H100-SXM5-80GB, nvlink: switch, nics: 4 x NDR infiniband}\n", 1))
	ask := func(cluster string) (*DoctorBenchDoc, error) {
		return DoctorBench{Result: "two.log", Cluster: cluster}.Run(t.Context(), Env{Files: files})
	}
	last := func(cluster string) (float64, *DoctorBenchDoc) {
		doc, err := ask(cluster)
		if err != nil {
			t.Fatalf("%s: %v", cluster, err)
		}
		p := doc.Sweeps[0].Points
		return p[len(p)-1].Expected.Micros(), doc
	}
	good, _ := last("good.yaml")
	mixed, doc := last("mixed.yaml")
	if mixed > 2*good || !strings.Contains(doc.Sweeps[0].Machine, "(gpu[1-2])") {
		t.Errorf("on %s: %.0f µs expected at the last size; %.0f µs on the same hosts alone", doc.Sweeps[0].Machine, mixed,
			good)
	}
	if first, doc := last("other.yaml"); first < 4*good ||
		!strings.Contains(strings.Join(doc.Notes, " "), "its first 2 nodes are predicted") {
		t.Errorf("hosts that the cluster does not have: %.0f µs, notes %q; expected the slow first ones, and a note", first,
			doc.Notes)
	}
	if _, err := ask("small.yaml"); err == nil || !strings.Contains(err.Error(), "gpu1, which has 4") {
		t.Errorf("8 GPUs measured on hosts of 4: %v", err)
	}
}
