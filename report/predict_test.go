package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// forecastOf predicts an all-reduce on layouts of a preset.
func forecastOf(t *testing.T, preset string, layouts, algos []string, sizes ...unit.Bytes) *query.PredictDoc {
	t.Helper()
	c, err := hardware.Preset(preset, 4)
	if err != nil {
		t.Fatal(err)
	}
	f := &query.PredictDoc{
		Cluster: preset, Op: coll.AllReduce, NCCL: nccl.Newest.String(), Compared: len(layouts) > 1, Model: "for a test",
	}
	for _, text := range layouts {
		nodes, gpus, err := predict.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(c, nodes, gpus)
		if err != nil {
			t.Fatal(err)
		}
		p, err := predict.New(c, l, nccl.Newest, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.AskSide(predict.Side{Layout: text, Nodes: nodes, Ranks: len(l)},
			predict.Query{Kind: coll.AllReduce, Sizes: sizes, Algos: algos})
		if err != nil {
			t.Fatal(err)
		}
		a.Side.Gain = 0 // nothing is said of NCCL's choice
		f.Sides, f.Rows = append(f.Sides, a.Side), append(f.Rows, a.Rows...)
	}
	return f
}

var someSizes = []unit.Bytes{8, unit.KiB, unit.MiB, unit.GiB}

func TestPredictions(t *testing.T) {
	f := forecastOf(t, "baskerville", []string{"1x4", "2x2"}, []string{"ring", "tree"}, unit.GiB)
	f.Compare = []predict.Verdict{{Size: unit.GiB, Winner: "1x4", Text: "1x4 wins"}}
	f.Advice = []predict.Advice{{Layout: "2x2", Text: "set it", Setting: "X=1"}}
	f.Skipped = []string{"2x2 nvls: no\x1b[31m"}
	var b bytes.Buffer
	if err := Print(&b, TextOptions{}, Predict, f); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"all_reduce on baskerville, 1x4 against 2x2, NCCL", "size (B)", "time (us)", "busbw (GB/s)", "ring*",
		"* NCCL's choice", "at 1 GiB: 1x4 wins", "advice for 2x2: set it", "left out: 2x2 nvls: no",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.ContainsRune(text, '\x1b') {
		t.Error("an escape reached the terminal")
	}
}

// The picture is sound XML, the same every time, with every line's name in it.
func TestCurves(t *testing.T) {
	for _, c := range []struct {
		name           string
		layouts, algos []string
		sizes          []unit.Bytes
		want           []string
	}{
		{
			"one",
			[]string{"2x8"},
			[]string{predict.Auto},
			someSizes,
			[]string{"tree ll", "busbw in GB/s", "on 2x8", "NCCL&#39;s choice: ", "bands: error bar; holds about 90%"},
		},
		{
			"algorithms",
			[]string{"2x8"},
			[]string{predict.Each},
			someSizes,
			[]string{">ring<", ">tree<", "ringed: NCCL&#39;s choice"},
		},
		{"forced", []string{"2x8"}, []string{"ring"}, someSizes, []string{"ring simple<"}},
		{"protocols", []string{"1x8"}, []string{predict.All}, someSizes, []string{">ring ll128<", ">tree simple<"}},
		{"layouts", []string{"1x8", "4x2"}, []string{"ring", "tree"}, someSizes, []string{">1x8 ring<", ">4x2 tree<"}},
		{
			"bars",
			[]string{"1x8", "4x2"},
			[]string{"ring", "tree"},
			someSizes[3:],
			[]string{
				"1x8  ring simple", "busbw, ", "1 GiB, predicted", "whiskers: error bar", ">limited by<", "links between GPUs",
			},
		},
		{"best", []string{"1x8"}, []string{predict.Best}, someSizes, []string{"not NCCL"}},
	} {
		f := forecastOf(t, "dgx-h100", c.layouts, c.algos, c.sizes...)
		var first, second bytes.Buffer
		if err := errors.Join(drawn(&first)(Curves(f)), drawn(&second)(Curves(f))); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if first.String() != second.String() {
			t.Errorf("%s: two pictures of one forecast differ", c.name)
		}
		for _, want := range c.want {
			if !strings.Contains(first.String(), want) {
				t.Errorf("%s: lacks %q", c.name, want)
			}
		}
		for d := xml.NewDecoder(&first); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if strings.Contains(second.String(), "NaN") || strings.Contains(second.String(), "Inf") {
			t.Errorf("%s: a coordinate is no number", c.name)
		}
	}
	if _, err := Curves(forecastOf(t, "dgx-h100", []string{"1x8", "2x8", "4x8"}, []string{predict.All},
		someSizes...)); err == nil {
		t.Error("a picture of two dozen lines was drawn")
	}
	if _, err := Curves(&query.PredictDoc{}); err == nil {
		t.Error("a picture of nothing was drawn")
	}
}

// AMD's links and library have their own names.
func TestPredictNamesRCCL(t *testing.T) {
	f := &forecast{PredictDoc: &query.PredictDoc{Library: "rccl"}}
	l := result.Limit{Kind: result.ByNVLink, Where: "node0/gpu0"}
	if got := f.where(l) + " " + f.runs(); got != "xgmi node0/gpu0 RCCL" {
		t.Error(got)
	}
	if f.Library = ""; f.where(l)+" "+f.runs() != "nvlink node0/gpu0 NCCL" {
		t.Error(f.where(l), f.runs())
	}
}
