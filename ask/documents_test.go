package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"busbar.dev/query"
	"busbar.dev/report"
)

// zeros are numbers of documents that may be zero, which is then known: counts, places from 0 on, times and shares.
var zeros = strings.Fields("bubble_s host longer_s longer_low_s longer_high_s wait wait_s waits gap failed shrunk " +
	"spares stopped only_old only_new not_understood wrong zero switches nics_per_node nodes gpus ports " +
	"rank ranks index nic rail local from to in out channel dev device hop host hops gdr_hops ring_like tree_like " +
	"lane at send_receive_connections root scratch_chunks cut other last factor line pid late_share traffic_s starved_s")

// empties are texts that scripts read in every finding, see package finding.
var empties = []string{"cost", "text"}

// TestDocuments holds the first document of every question to one form: kind and version first, the cluster and the
// job as they were resolved, degrees as an object, seconds everywhere, and nothing for what is not known.
func TestDocuments(t *testing.T) {
	audit, path := *Audit, *Path
	path.Name = "map --path"
	for _, q := range append(slices.Clone(Questions), &audit, &path) {
		t.Run(strings.ReplaceAll(q.Name, " ", ""), func(t *testing.T) {
			t.Parallel()
			doc := documentOf(t, q)
			fields := plainly[q.Name]
			if kind, _ := doc["kind"].(string); kind == "" || doc["version"] == nil {
				t.Errorf("kind %q, version %v", kind, doc["version"])
			}
			if strings.Contains(fields, "cluster=") && doc["resolved_cluster"] == nil {
				t.Error("the document does not say which cluster it is about")
			}
			if strings.Contains(fields, "model=") && doc["job"] == nil && q.Name != "envelope" { // which has formulas alone
				t.Error("the document does not say which job it is about")
			}
			oneForm(t, "", doc)
		})
	}
}

// documentOf is the document of a question as --json prints it.
func documentOf(t *testing.T, q *Question) map[string]any {
	t.Helper()
	question, params := q.New(), q.Params()
	for word := range strings.FieldsSeq(plainly[q.Name]) {
		name, value, _ := strings.Cut(word, "=")
		i := slices.IndexFunc(params, func(p query.Param) bool { return p.Name == name })
		if err := params[i].Set(question, value); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := q.Run(t.Context(), question, query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	doc := map[string]any{}
	if err := report.JSON(&text, answer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// otherTimes are names of times that are not in seconds.
var otherTimes = regexp.MustCompile(`_(us|ms|ns|min|hours|days)$`)

// oneForm walks a part of a document.
func oneForm(t *testing.T, at string, x any) {
	t.Helper()
	fields, ok := x.(map[string]any)
	if list, is := x.([]any); is {
		for _, v := range list {
			oneForm(t, at+"[]", v)
		}
	}
	if !ok {
		return
	}
	for name, v := range fields {
		place := at + "." + name
		switch _, object := v.(map[string]any); {
		case otherTimes.MatchString(name):
			t.Errorf("%s: expected seconds, _s", place)
		case v == nil:
			t.Errorf("%s is null; expected a value, or no field", place)
		case name == "parallel" && !object:
			t.Errorf("%s is %v; expected an object", place, v)
		case v == 0.0 && !slices.Contains(zeros, name), v == "" && !slices.Contains(empties, name):
			t.Errorf("%s is %q; expected no field where it is not known", place, fmt.Sprint(v))
		}
		oneForm(t, place, v)
	}
}
