package ncclgraph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"busbar.dev/internal/corpus"
)

// rings is synthetic: one ring of two nodes and a tree, as NCCL 2.30 dumps them.
const rings = `<graphs version="1">
  <graph id="0" pattern="4" crossnic="1" nchannels="1" speedintra="45.1" speedinter="48" latencyinter="0.5" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <net dev="0x10"/>
      <gpu dev="0" rank="4"/>
      <gpu dev="0x100000000000003" rank="7"/>
      <net dev="0x10"/>
    </channel>
  </graph>
  <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
`

func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"file":   rings,
		"log":    "INFO <0>\n" + rings + "done",
		"mpirun": "[1,0]<stdout>:" + strings.ReplaceAll(rings, "\n", "\n[1,0]<stdout>:"),
		"crlf":   strings.ReplaceAll(rings, "\n", "\r\n"),
	} {
		if !Match([]byte(text)) {
			t.Errorf("%s: not matched", name)
		}
		s, err := Read("in", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		want := []Graph{
			{
				ID: Ring, Pattern: PatternRing, CrossNic: 1, NChannels: 1, SpeedIntra: 45.1, SpeedInter: 48, LatencyInter: 0.5, TypeIntra: "NVL", TypeInter: "PIX", SameChannels: true,
				Channels: [][]Element{{{Net: true, Dev: 16, Rank: -1}, {Dev: 0, Rank: 4}, {Host: 1, Dev: 3, Rank: 7}, {Net: true, Dev: 16, Rank: -1}}},
			},
			{ID: NVLS, Pattern: PatternNVLS, TypeIntra: "LOC", TypeInter: "LOC"},
		}
		if !reflect.DeepEqual(s.Graphs, want) || len(s.Warnings) > 0 {
			t.Errorf("%s: got %+v\n%v", name, s.Graphs, s.Warnings)
		}
		if g := s.ByID(Ring); g == nil || !reflect.DeepEqual(GPUs(g.Channels[0]), []int{0, 3}) || s.ByID(Tree) != nil {
			t.Errorf("%s: ByID", name)
		}
	}
}

func TestReadDecimal(t *testing.T) {
	s, err := Read("in", strings.NewReader(strings.NewReplacer("0x10\"", "10\"", "0x100000000000003", "3").Replace(rings)))
	if err != nil || s.Graphs[0].Channels[0][0].Dev != 10 {
		t.Errorf("%v %+v", err, s)
	}
}

func TestReadBad(t *testing.T) {
	many := "<graphs version=\"1\"><graph>" + strings.Repeat("<channel/>", maxChannels+1)
	for _, c := range []struct{ text, want string }{
		{"", "in:1: no <graphs> element"},
		{"<system version=\"1\"><cpu/></system>", "no <graphs> element"},
		{"<!DOCTYPE g [<!ENTITY a \"b\">]>" + rings, "declares XML entities"},
		{many, "more than 1024 channels"},
	} {
		if _, err := Read("in", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v; want %s", c.text, err, c.want)
		}
	}
	for old, c := range map[string]struct{ new, want string }{
		"nchannels=\"1\"":                     {"nchannels=\"7\"", "in:2: graph 0 says 7 channels and lists 1"},
		"speedinter=\"48\"":                   {"speedinter=\"-1\"", "graph speedinter \"-1\""},
		"version=\"1\"":                       {"version=\"2\"", "graphs version \"2\""},
		"rank=\"7\"":                          {"rank=\"x\"", "gpu rank \"x\""},
		"dev=\"0\" ":                          {"dev=\"zz\" ", "dev \"zz\""},
		"    </channel>\n  </graph>":          {"", ""},
		"<gpu dev=\"0\" rank=\"4\"/>":         {"<gpu dev=\"0", "<gpu is not a whole tag"},
		rings[strings.Index(rings, "3\" r"):]: {"", "cut off"},
	} {
		s, err := Read("in", strings.NewReader(strings.Replace(rings, old, c.new, 1)))
		if err != nil || !strings.Contains(fmt.Sprint(s.Warnings), c.want) {
			t.Errorf("%s: %v %v; want %s", old, err, s, c.want)
		}
	}
}

// TestCorpus holds the reader to the index for files of real machines.
func TestCorpus(t *testing.T) {
	entries := corpus.Index(t, "NCCL graph XML")
	for _, e := range entries {
		data := corpus.Open(t, e.File)
		s, err := Read(e.File, bytes.NewReader(data))
		if err != nil || !Match(data) || len(s.Warnings) > 0 {
			t.Fatalf("%s: %v %v", e.File, err, s)
		}
		var want struct {
			Graphs []map[string]any `json:"graphs"`
		}
		raw, _ := json.Marshal(e.Facts)
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if len(s.Graphs) != len(want.Graphs) {
			t.Fatalf("%s: %d graphs, want %d", e.File, len(s.Graphs), len(want.Graphs))
		}
		for i, g := range s.Graphs {
			var sizes []int
			for _, c := range g.Channels {
				sizes = append(sizes, len(GPUs(c)))
			}
			same := "0"
			if g.SameChannels {
				same = "1"
			}
			got := map[string]any{
				"id": fmt.Sprint(g.ID), "pattern": fmt.Sprint(g.Pattern), "crossnic": fmt.Sprint(g.CrossNic), "nchannels": fmt.Sprint(g.NChannels),
				"speedintra": fmt.Sprint(g.SpeedIntra), "speedinter": fmt.Sprint(g.SpeedInter), "latencyinter": fmt.Sprint(g.LatencyInter),
				"typeintra": g.TypeIntra, "typeinter": g.TypeInter, "samechannels": same, "channels": len(g.Channels), "gpus_per_channel": sizes,
			}
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want.Graphs[i])
			if string(a) != string(b) {
				t.Errorf("%s: graph %d:\n got %s\nwant %s", e.File, i, a, b)
			}
		}
	}
	t.Logf("%d files held to the index", len(entries))
}

// TestRealDumps reads what NCCL 2.28.9 dumped: five graphs each, a ring that
// passes the net twice.
func TestRealDumps(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(corpus.Dir(t), "corpus", "nccl-real", "*", "graph.xml"))
	if len(paths) == 0 {
		t.Fatal("no dumps")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(filepath.Base(path), bytes.NewReader(data))
		if err != nil || len(s.Warnings) > 0 || len(s.Graphs) != 5 {
			t.Fatalf("%s: %v %+v", path, err, s)
		}
		ring := s.ByID(Ring)
		if ring.TypeInter != "PHB" || len(ring.Channels) != 1 || len(ring.Channels[0]) != 3 || !ring.Channels[0][2].Net {
			t.Errorf("%s: %+v", path, ring)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(rings)
	f.Add("<graphs ><graph><channel><gpu dev='0xffffffffffffffff'/>")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("in", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, g := range s.Graphs {
			for _, c := range g.Channels {
				for _, e := range c {
					if e.Dev < -1 || e.Rank < -1 || e.Host < 0 {
						t.Fatalf("%+v", e)
					}
				}
			}
		}
	})
}
