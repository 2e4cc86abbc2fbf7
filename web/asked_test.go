package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"busbar.dev/ask"
	"busbar.dev/query"
	"busbar.dev/report"
)

// TestQuestions holds what may be asked against the command that asks the same.
func TestQuestions(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range []struct{ path, line string }{
		{"/api/map", "busbar map --json"},
		{"/api/map?c=dgx-h100:4", "busbar map dgx-h100:4 --json"},
		{"/api/map?c=dgx-h100:4&audit=1", "busbar map --audit dgx-h100:4 --json"},
		{
			"/api/map?path=node0/gpu0,node1/gpu1&path=node0/gpu1,node1/gpu0&c=a:2",
			"busbar map --path node0/gpu0,node1/gpu1 --path node0/gpu1,node1/gpu0 a:2 --json",
		},
		{
			"/api/predict?c=x:2&b=8&e=1G&f=2.5&algo=each",
			"busbar predict -c x:2 --minbytes 8 --maxbytes 1G --stepfactor 2.5 --algo each --json",
		},
		{"/api/predict?algo=--output=x", "busbar predict --algo --output=x --json"},
		{
			"/api/step?c=x&m=y&parallel=tp%3D8&set=network.gbps%3D400&sync=1",
			"busbar step -c x -m y --parallel tp=8 --sync --set network.gbps=400 --json",
		},
		{
			"/api/need?c=x&m=y&batch=32&mbs=2&seq-len=4096", // as other programs call them
			"busbar need -c x -m y --global-batch 32 --micro-batch 2 --seq 4096 --json",
		},
		{"/api/plan?c=x&m=y&top=3", "busbar plan -c x -m y --top 3 --json"},
		{"/api/presets", "busbar list presets --json"},
		{"/api/models?words=gpt2", "busbar list models gpt2 --json"},
	} {
		res, text := s.ask(t, "GET", c.path, s.read, nil)
		var doc struct{ Line string }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %d %s", c.path, res.StatusCode, text)
			continue
		}
		if doc.Line != c.line {
			t.Errorf("%s: %s, expected %s", c.path, doc.Line, c.line)
		}
		if line, err := url.PathUnescape(res.Header.Get("X-Busbar-Command")); err != nil || line != c.line {
			t.Errorf("%s: command %q, %v", c.path, line, err)
		}
	}
}

// TestAnswersAreDocuments holds answers against package query's own.
func TestAnswersAreDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes long under the race detector")
	}
	s := realSite(t, nil)
	doc, err := query.Predict{Cluster: "dgx-h100:2", Size: "1G"}.Run(t.Context(), query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := report.JSON(&want, doc); err != nil {
		t.Fatal(err)
	}
	if res, text := s.ask(t, "GET", "/api/predict?c=dgx-h100:2&size=1G", s.read, nil); res.StatusCode != 200 ||
		text != want.String() {
		t.Errorf("%d %.300s", res.StatusCode, text)
	}
	for _, c := range []struct {
		path string
		code int
		kind string
		text string
	}{
		{"/api/map?c=baskerville:2&audit=1", 200, jsonType, `"audit"`},
		{"/api/map?c=dgx-h100:2&path=node0/gpu0,node1/gpu0", 200, jsonType, `"paths"`},
		{"/api/map?c=dgx-h100:2&o=svg", 200, ask.SVG, "<svg"},
		{"/api/predict?c=dgx-h100:2&o=svg", 200, ask.SVG, "<svg"},
		{"/api/map?c=nosuch", 400, jsonType, "no such file, and as a preset"},
		{"/api/map", 400, jsonType, "this machine is not to be read"},
		{"/api/map?c=/etc/passwd", 400, jsonType, "no such file"},
		{"/api/map?c=gpu1%3D/etc/passwd", 400, jsonType, "no such file"},
		{"/api/step?c=dgx-h100&m=config.json", 400, jsonType, "no such file"},
		{"/api/predict?c=gb200-nvl72:20000", 422, jsonType, "expected at most"},
	} {
		res, text := s.ask(t, "GET", c.path, s.read, nil)
		if res.StatusCode != c.code || res.Header.Get("Content-Type") != c.kind || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s %.300s", c.path, res.StatusCode, res.Header.Get("Content-Type"), text)
		}
	}
}

// TestFaultsAreSurvived turns a fault of a question into an answer.
func TestFaultsAreSurvived(t *testing.T) {
	s := newSite(t, nil)
	s.asking = func(context.Context, *asked, query.Env) (any, error) { panic("a fault") }
	if res, text := s.ask(t, "GET", "/api/map?c=x", s.read, nil); res.StatusCode != 500 ||
		!strings.Contains(text, "a fault") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}

// TestWhatCannotBeAsked lists hostile and mistaken questions.
func TestWhatCannotBeAsked(t *testing.T) {
	s := newSite(t, nil)
	for _, path := range []string{
		"/api/map?output=/tmp/x", "/api/map?o=/tmp/x", "/api/map?o=svg%3D/tmp/x", "/api/map?o=text", "/api/map?json=1",
		"/api/map?c=-", "/api/map?c=--audit", "/api/map?c=-o", "/api/map?c=a&c=b", "/api/map?audit=yes",

		"/api/map?c=@", "/api/map?c=@../../etc/passwd", "/api/map?c=@" + strings.Repeat("0", 32),
		"/api/map?c=@" + strings.Repeat("0", 32) + ":x",
		"/api/predict?size=@" + strings.Repeat("0", 32), "/api/predict?trace=/tmp/x", "/api/predict?o=trace",
		"/api/predict?f=abc", "/api/predict?f=1e9", "/api/predict?root=0x10",
		"/api/predict?op=" + strings.Repeat("x", 401), "/api/predict?op=a%00b", "/api/predict?op=a%0Ab",
		"/api/predict?op=%1b[31m",
		"/api/plan?emit=/tmp/x", "/api/plan?force=1", "/api/plan?detected=/etc/passwd", "/api/plan?pick=2",
		"/api/plan/files?pick=0", "/api/plan/files?pick=x", "/api/plan/files?emit=/tmp",
		"/api/step?output=x.svg", "/api/models?words=-v", "/api/hardware?words=--json",
		"/api/measured?file=/etc/passwd", "/api/measured?file=-", "/api/doctor?file=/etc", "/api/doctor?live=1",
		"/api/explain?file=..", "/api/version?x=1",
	} {
		res, text := s.ask(t, "GET", path, s.order, nil)
		var doc struct{ Error string }
		if res.StatusCode != 400 || json.Unmarshal([]byte(text), &doc) != nil || doc.Error == "" {
			t.Errorf("%s: %d %.200s; expected 400 and a reason", path, res.StatusCode, text)
		}
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %s", s.ran[0].line)
	}
}

// TestMissingHardware names the field of the cluster that would help, so that the page can lead to it.
func TestMissingHardware(t *testing.T) {
	s := realSite(t, nil)
	topo := "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNODE\t0-31\t0\nGPU1\tNODE\t X \t0-31\t0\n\nLegend:\n" +
		"\n  X    = Self\n"
	_, text := s.ask(t, "POST", "/api/files?name=topo.txt", s.read, strings.NewReader(topo))
	var sent struct{ ID string }
	if err := json.Unmarshal([]byte(text), &sent); err != nil || sent.ID == "" {
		t.Fatalf("upload: %s, %v", text, err)
	}
	for _, c := range []struct{ path, field string }{
		{"/api/predict?c=" + sent.ID, "gpu"},
		{"/api/step?m=gpt2-large&c=" + sent.ID, "gpu"},
		{"/api/step?m=gpt2-large&c=4xa6000:2", "nic"},
		{"/api/step?m=gpt2-large&c=4xa6000&parallel=tp=3", "parallel"},
	} {
		res, text := s.ask(t, "GET", c.path, s.read, nil)
		var doc struct{ Error, Field string }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || res.StatusCode != http.StatusBadRequest ||
			doc.Field != c.field || doc.Error == "" {
			t.Errorf("%s: %d %s, %v; expected a refusal with field %q", c.path, res.StatusCode, text, err, c.field)
		}
	}
	if res, text := s.ask(t, "GET", "/api/step?m=gpt2-large&gpu=a6000&c="+sent.ID, s.read,
		nil); res.StatusCode != http.StatusOK {
		t.Errorf("with the GPU named: %d %s", res.StatusCode, text)
	}
}

func FuzzRead(f *testing.F) {
	for _, q := range []string{
		"c=dgx-h100:4&op=all_reduce", "c=@../x:4", "o=svg=x", "path=a&path=b", "%zz", "c=" + strings.Repeat(":", 50),
	} {
		f.Add(q)
	}
	s := &Server{shelf: &uploadStore{dir: f.TempDir()}}
	f.Fuzz(func(t *testing.T, text string) {
		given, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, q := range questions() {
			a, err := s.read(q, given)
			if err != nil {
				continue
			}
			// Whatever is said, a question may read what was uploaded and nothing else, and asks for no file to be written.
			if len(a.files) > 0 {
				t.Fatalf("%q: %v", text, a.files)
			}
			if p, ok := a.ask.(*query.Plan); ok && (p.Emit != "" || p.Detected != "") {
				t.Fatalf("%q: %+v", text, p)
			}
		}
	})
}
