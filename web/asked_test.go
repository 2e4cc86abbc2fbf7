package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestQuestions holds what may be asked against the words that become of it.
func TestQuestions(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range []struct{ path, args string }{
		{"/api/map", "map --json"},
		{"/api/map?c=dgx-h100:4", "map dgx-h100:4 --json"},
		{"/api/map?c=dgx-h100:4&o=svg", "map dgx-h100:4 --output=svg"},
		{"/api/map?path=node0/gpu0,node1/gpu1&path=node0/gpu1,node1/gpu0&c=a:2", "map a:2 --path=node0/gpu0,node1/gpu1 --path=node0/gpu1,node1/gpu0 --json"},
		{"/api/predict?c=x:2&b=8&e=1G&f=2.5&algo=each", "predict --cluster=x:2 --minbytes=8 --maxbytes=1G --stepfactor=2.5 --algo=each --json"},
		{"/api/predict?algo=--output=x", "predict --algo=--output=x --json"},
		{"/api/step?c=x&m=y&parallel=tp%3D8&set=network.gbps%3D400&sync=1", "step --cluster=x --model=y --parallel=tp=8 --sync --set=network.gbps=400 --json"},
		{"/api/step?c=x&m=y&o=svg", "step --cluster=x --model=y --output=svg=-"},
		{"/api/plan?c=x&m=y&top=3", "plan --cluster=x --model=y --top=3 --json"},
		{"/api/presets", "presets --json"},
		{"/api/models?model=gpt2", "models gpt2 --json"},
	} {
		res, text := s.ask(t, "GET", c.path, s.read, nil)
		var doc struct{ Args []string }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %d %s", c.path, res.StatusCode, text)
			continue
		}
		if strings.Join(doc.Args, " ") != c.args {
			t.Errorf("%s: %q, expected %q", c.path, doc.Args, c.args)
		}
		line, err := url.PathUnescape(res.Header.Get("X-Busbar-Command"))
		if err != nil || !strings.HasPrefix(line, "busbar "+doc.Args[0]) {
			t.Errorf("%s: command %q, %v", c.path, line, err)
		}
	}
}

// TestWhatCannotBeAsked lists hostile and mistaken questions.
func TestWhatCannotBeAsked(t *testing.T) {
	s := newSite(t, nil)
	for _, path := range []string{
		"/api/map?output=/tmp/x", "/api/map?o=/tmp/x", "/api/map?o=svg%3D/tmp/x", "/api/map?o=text", "/api/map?json=1",
		"/api/map?c=-", "/api/map?c=--audit", "/api/map?c=-o", "/api/map?c=a&c=b", "/api/map?audit=yes",
		"/api/map?c=x:0", "/api/map?c=x:-1", "/api/map?c=x:20001", "/api/map?c=x:99999999999999999999", "/api/map?c=x:1e3",
		"/api/map?c=@", "/api/map?c=@../../etc/passwd", "/api/map?c=@" + strings.Repeat("0", 32), "/api/map?c=@" + strings.Repeat("0", 32) + ":x",
		"/api/predict?size=@" + strings.Repeat("0", 32), "/api/predict?trace=/tmp/x", "/api/predict?o=trace", "/api/predict?f=abc", "/api/predict?f=1e9", "/api/predict?root=0x10",
		"/api/predict?op=" + strings.Repeat("x", 401), "/api/predict?op=a%00b", "/api/predict?op=a%0Ab", "/api/predict?op=%1b[31m",
		"/api/plan?emit=/tmp/x", "/api/plan?force=1", "/api/plan?detected=/etc/passwd", "/api/plan?pick=2",
		"/api/plan/files?pick=0", "/api/plan/files?pick=x", "/api/plan/files?emit=/tmp",
		"/api/step?output=x.svg", "/api/models?model=-v", "/api/hardware?table=--json",
		"/api/measured?file=/etc/passwd", "/api/measured?file=-", "/api/doctor?file=/etc", "/api/doctor?live=1", "/api/explain?file=..", "/api/version?x=1",
	} {
		res, text := s.ask(t, "GET", path, s.order, nil)
		var doc struct{ Error string }
		if res.StatusCode != 400 || json.Unmarshal([]byte(text), &doc) != nil || doc.Error == "" {
			t.Errorf("%s: %d %.200s; expected 400 and a reason", path, res.StatusCode, text)
		}
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %q", s.ran[0].Args)
	}
}

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{"dgx-h100:4": "dgx-h100:4", "tp=8,pp=2": "tp=8,pp=2", "gpu[01-08]": "'gpu[01-08]'", "it's": `'it'\''s'`, "": "''", "a b": "'a b'", "$(x)": "'$(x)'", "`x`": "'`x`'"} {
		if got := quoted(word); got != want {
			t.Errorf("%q: %s, expected %s", word, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, q := range []string{"c=dgx-h100:4&op=all_reduce", "c=@../x:4", "o=svg=x", "path=a&path=b", "%zz", "c=" + strings.Repeat(":", 50)} {
		f.Add(q)
	}
	s := &Server{shelf: &shelf{dir: f.TempDir()}}
	f.Fuzz(func(t *testing.T, text string) {
		given, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, q := range questions {
			a, err := s.read(q, given)
			if err != nil {
				continue
			}
			// Whatever is said, no word is a flag but those of the table, and none writes a file.
			for _, w := range a.args[len(q.command):] {
				name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
				switch {
				case !strings.HasPrefix(w, "-"), w == "--json":
				case name == "output":
					if _, file, ok := strings.Cut(w, "svg="); ok && file != "-" {
						t.Fatalf("%q: %q", text, w)
					}
				case !strings.HasPrefix(w, "--") || !slices.ContainsFunc(q.params, func(p param) bool { return p.flag == name }):
					t.Fatalf("%q: %q is no flag of %s", text, w, q.name)
				}
			}
		}
	})
}
