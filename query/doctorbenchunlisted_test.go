package query_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/query"
)

// A table without the lines of its ranks is of the nodes of the cluster that is given, and shown as it is without one;
// of a collective that its columns leave open, the rate is told.
func TestTableWithoutRanks(t *testing.T) {
	const head = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw " +
		"  busbw #wrong\n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
	text := head
	for _, row := range []string{
		"268435456      67108864     float     sum      -1   3000.0   89.48  167.77      0   3000.0   89.48  167.77      0",
		"536870912     134217728     float     sum      -1   5000.0  107.37  201.33      0   5000.0  107.37  201.33      0",
	} {
		text += "   " + row + "\n"
	}
	env := query.Env{Files: fstest.MapFS{
		"table.txt": {Data: []byte(text)},
		"open.txt":  {Data: []byte(strings.NewReplacer("sum", "none", "167.77", "78.29", "201.33", "93.95").Replace(text))},
	}}
	for _, cluster := range []string{"dgx-a100:2", "dgx-a100", ""} {
		doc, err := query.DoctorBench{Result: "table.txt", Cluster: cluster}.Run(t.Context(), env)
		if err != nil {
			t.Errorf("%s: %v", cluster, err)
			continue
		}
		if s := doc.Sweeps[0]; s.Ranks != 16 || len(s.Points) != 2 || (s.Points[0].Expected > 0) != (cluster != "") ||
			cluster != "" && s.Nodes != 2 || (len(doc.Unjudged) > 0) != (cluster == "") {
			t.Errorf("%q: %d ranks on %d nodes of %s, %v", cluster, s.Ranks, s.Nodes, s.Machine, doc.Unjudged)
		}
	}
	_, err := query.DoctorBench{Result: "open.txt"}.Run(t.Context(), env)
	if err == nil || !strings.Contains(err.Error(), "93.95 GB/s, 0.875 of algbw") {
		t.Errorf("an open collective: %v", err)
	}
}
