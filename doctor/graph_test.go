package doctor

import (
	"strings"
	"testing"
)

// What NCCL_GRAPH_DUMP_FILE holds is evidence: rings over PCIe where the node has NVLink, and a search that failed.
func TestGraphDump(t *testing.T) {
	const nvlink = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\t0-15\t0\nGPU1\tNV12\t X \t0-15\t0\n"
	graph := func(channels, rate, path string) string {
		return `<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="` + channels + `" speedintra="` + rate +
			`" speedinter="12" latencyinter="0" typeintra="` + path + `" typeinter="PHB" samechannels="1">
    <channel>
      <gpu dev="0x0" rank="0"/>
      <gpu dev="0x1" rank="1"/>
    </channel>
  </graph>
</graphs>
`
	}
	for _, c := range []struct{ name, graph, topo, want string }{
		{"over the sockets' link", graph("2", "9", "SYS"), nvlink, ""},
		{"over NVLink", graph("12", "20", "NVL"), nvlink, ""},
		{"no NVLink there", graph("2", "9", "SYS"), strings.ReplaceAll(nvlink, "NV12", "SYS"), ""},
		{"the search failed", graph("1", "0.1", "SYS"), "", "NCCL's graph search failed"},
	} {
		r := vocabulary().NewReader()
		for name, text := range map[string]string{"graph.xml": c.graph, "topo.txt": c.topo} {
			if text == "" {
				continue
			}
			if err := r.Read(name, strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		title := ""
		for _, f := range Examine(set).Findings {
			if f.ID == "graph-search" {
				title = f.Title
			}
		}
		if !strings.Contains(title, c.want) || c.want == "" && title != "" {
			t.Errorf("%s: %q; want %q", c.name, title, c.want)
		}
	}
}
