package doctor

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/test/threads"
)

// TestThreads holds the collected threads to their form, and the blind ones apart from the others.
func TestThreads(t *testing.T) {
	sources, ids := map[string]string{}, map[string]string{}
	for _, name := range []string{
		"fit.jsonl", "fit-2.jsonl", "fit-3.jsonl", "fit-4.jsonl", "fit-5.jsonl", "fit-6.jsonl", "fit-7.jsonl",
		"fit-8.jsonl", "blind.jsonl",
	} {
		for _, x := range threads.Threads(t, name) {
			source := strings.ToLower(strings.TrimSuffix(x.Source, "/"))
			for _, other := range []string{sources[source], ids[x.ID]} {
				if other != "" {
					t.Errorf("%s %s: also in %s", name, x.ID, other)
				}
			}
			sources[source], ids[x.ID] = name+" "+x.ID, name+" "+x.ID
			lintThread(t, name, &x)
		}
	}
}

func lintThread(t *testing.T, name string, x *threads.Thread) {
	t.Helper()
	bad := func(what, got string) { t.Errorf("%s %s: %s %q", name, x.ID, what, got) }
	for what, text := range map[string]string{
		"id": x.ID, "project": x.Project, "symptom": x.Symptom, "cause": x.Cause, "cause_key": x.CauseKey,
	} {
		if strings.TrimSpace(text) == "" {
			bad("lacks "+what, "")
		}
	}
	if !strings.HasPrefix(x.Source, "http") {
		bad("source", x.Source)
	}
	if !slices.Contains([]string{"confirmed", "stated"}, x.Status) {
		bad("status", x.Status)
	}
	for _, o := range x.Observations {
		if !slices.Contains([]string{"seen", "absent", "tried-helped", "tried-no-effect", "stated-ok"}, o.Polarity) {
			bad("polarity", o.Polarity)
		}
		if !slices.Contains([]string{"log", "figure", "env", "topo", "words", "counter", "command"}, o.Kind) {
			bad("kind", o.Kind)
		}
		if !slices.Contains([]string{"", "rank", "node", "pair", "size", "node-count", "since", "all"}, o.Scope) {
			bad("scope", o.Scope)
		}
	}
	for _, f := range x.Fragments {
		if n := len(strings.Fields(f)); n == 0 || n > 12 {
			bad("fragment", f)
		}
	}
}
