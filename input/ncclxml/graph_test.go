package ncclxml

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

var graphReader = readertest.Reader{Match: MatchGraph, Read: ReadGraph}

// graphText is written after src/graph/xml.cc of release 2.28: hexadecimal devices, two hosts of one NVLink domain.
const graphText = `<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="8" speedintra="45" speedinter="45" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel>
      <net dev="0x0"/>
      <gpu dev="0x0" rank="0"/>
      <gpu dev="0x1" rank="1"/>
      <gpu dev="0x100000000000000" rank="2"/>
      <net dev="0x0"/>
    </channel>
  </graph>
  <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
`

func TestGraph(t *testing.T) {
	f := graphReader.Text(t, graphText)
	ty := f.Types[0]
	if ty.Count(cluster.GPU) != 3 || ty.Trays != 2 || ty.Devices[1].Index != 1 {
		t.Errorf("%+v", ty)
	}
	if len(f.Warnings) != 1 || f.Warnings[0].Text != "NCCL found 8 channels of 45 GB/s inside the node, GPUs joined by "+
		"NVL, and 45 GB/s to the network over PIX" || f.Warnings[0].Where != "ring" {
		t.Errorf("%+v", f.Warnings)
	}
	for text, want := range map[string]string{
		"<graphs version=\"1\"><graph id=\"0\" ":                                     "expected the whole file",
		"<graphs version=\"1\"><graph nchannels=\"1\"/></graphs>":                    "no graph with a GPU",
		"<graphs ><graph ><gpu dev=\"x\"/></graph></graphs>":                         "gpu with dev",
		"<!DOCTYPE x [<!ENTITY a \"&a;&a;\">]><graphs ><graph id=\"&a;\"/></graphs>": "no graph with a GPU",
	} {
		if _, err := ReadGraph("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Every sample has as many graphs and GPUs as the index counted.
func TestGraphSamples(t *testing.T) {
	for _, e := range corpus.Index(t, "NCCL graph XML") {
		f := graphReader.Text(t, string(corpus.Open(t, e.File)))
		if n := f.Types[0].Count(cluster.GPU); n != 2 && n != 4 || len(f.Warnings) != 3 {
			t.Errorf("%s: %d GPUs, %v", e.File, n, f.Warnings)
		}
	}
}

func FuzzReadGraph(f *testing.F) {
	graphReader.Fuzz(f, nil, graphText, "<graphs ><graph nchannels=\"1\"><gpu dev=\"0\"/></graph></graphs>")
}
