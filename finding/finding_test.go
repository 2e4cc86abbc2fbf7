package finding

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// documents are findings as the documents that have them write them.
	documents = []struct {
		name string
		f    Finding
		text string
	}{
		{"audit", Finding{ID: "nic-shared", Severity: Warn, Where: "node0/mlx5_0", Text: "a & b", Fix: "c"}, `{"id":"nic-shared","severity":"warn","where":"node0/mlx5_0","text":"a & b","fix":"c","cost":""}`},
		{"audit, empty", Finding{ID: "x"}, `{"id":"x","severity":"note","text":"","cost":""}`},
		{
			"doctor",
			Finding{
				ID: "i", Severity: Error, Confidence: 0.9, Title: "t", Cause: "<c>", Fix: "f", Where: "w", Reference: "r",
				Evidence: []Quote{{"log", 12, "l"}, {File: "g", Text: "m"}}, ExplainedBy: "e",
			},
			`{"id":"i","severity":"error","confidence":0.9,"where":"w","text":"","title":"t","cause":"<c>","fix":"f","cost":"","reference":"r","evidence":[{"file":"log","line":12,"text":"l"},{"file":"g","line":0,"text":"m"}],"explained_by":"e"}`,
		},
		{"doctor, bare", Finding{ID: "i", Title: "t", Evidence: []Quote{}}, `{"id":"i","severity":"note","text":"","title":"t","cost":"","evidence":[]}`},
		{
			"pairs",
			Finding{
				Kind: "slow-host", Severity: Error, Ranks: []int{3}, Figure: "bandwidth", Factor: 0.5, Sigma: 7.25, Text: "t",
			},
			`{"kind":"slow-host","severity":"error","text":"t","cost":"","ranks":[3],"figure":"bandwidth","factor":0.5,"sigma":7.25}`,
		},
		{
			"fleet",
			Finding{
				ID: "slow-host:a", Kind: "slow-host", Severity: Warn, Nodes: []string{"a"}, Figure: "bandwidth", Since: began,
				Always: true, Factor: 0.7, Confidence: 0.8, Clearing: true, Evidence: Facts("e", "f"), Text: "t", Fix: "x",
			},
			`{"id":"slow-host:a","kind":"slow-host","severity":"warn","confidence":0.8,"text":"t","fix":"x","cost":"","nodes":["a"],"evidence":["e","f"],"figure":"bandwidth","factor":0.7,"since":"2026-01-02T03:04:05Z","always":true,"clearing":true}`,
		},
		{
			"fleet, over",
			Finding{
				ID: "silent:a", Kind: "silent", Severity: Error, Where: "p", Since: began, Cleared: began.Add(time.Hour),
			},
			`{"id":"silent:a","kind":"silent","severity":"error","where":"p","text":"","cost":"","since":"2026-01-02T03:04:05Z","cleared":"2026-01-02T04:04:05Z"}`,
		},
	}
)

// TestJSON holds the keys and their order of every document, and that what was stored is read back. What scripts index
// is there also where it is empty.
func TestJSON(t *testing.T) {
	for _, d := range documents {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(d.f); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(b.String()); got != d.text {
			t.Errorf("%s:\n%s\nwant\n%s", d.name, got, d.text)
		}
		var back Finding
		if err := json.Unmarshal([]byte(d.text), &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, d.f) {
			t.Errorf("%s:\n%+v\nwant\n%+v", d.name, back, d.f)
		}
	}
}

// TestStored reads a finding as fleets have stored it before keys were left out.
func TestStored(t *testing.T) {
	text := `{"id":"silent:a","kind":"silent","severity":"error","nodes":null,"where":"p","since":"2026-01-02T03:04:05Z",` +
		`"factor":0,"confidence":0,"evidence":["e",{"file":"log","line":12,"text":"l"}],"text":"","fix":""}`
	want := Finding{
		ID: "silent:a", Kind: "silent", Severity: Error, Where: "p", Since: began,
		Evidence: []Quote{{Text: "e"}, {"log", 12, "l"}},
	}
	var f Finding
	if err := json.Unmarshal([]byte(text), &f); err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestNothingIsLost: a finding with fields of several documents keeps all of them.
func TestNothingIsLost(t *testing.T) {
	f := Finding{ID: "i", Nodes: []string{"a"}, Sigma: 2, Since: began}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Finding
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, f) {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
}

// TestEscaping: the document's encoder decides what is escaped.
func TestEscaping(t *testing.T) {
	f := Finding{ID: "i", Text: "<&>", Evidence: Facts("<a>")}
	data, err := json.Marshal(f)
	if err != nil || strings.ContainsAny(string(data), "<&>") || strings.Count(string(data), `\u003c`) != 2 {
		t.Errorf("%s %v", data, err)
	}
}

func TestSeverity(t *testing.T) {
	for _, s := range []Severity{Note, Warn, Error} {
		if got, err := ParseSeverity(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if Note >= Warn || Warn >= Error {
		t.Error("severities are not ordered")
	}
	if _, err := ParseSeverity("fatal"); err == nil || err.Error() != `severity "fatal"; expected note, warn or error` {
		t.Error(err)
	}
	if _, err := json.Marshal(Severity(9)); err == nil || Severity(9).String() != "Severity(9)" {
		t.Error("Severity(9) is marshalled")
	}
	var f Finding
	if err := json.Unmarshal([]byte(`{"id":"i","severity":""}`), &f); err != nil || f.Severity != Note {
		t.Errorf("%+v, %v", f, err)
	}
	if err := json.Unmarshal([]byte(`{"severity":"fatal"}`), &f); err == nil {
		t.Error("an unknown severity is read")
	}
}

func TestList(t *testing.T) {
	list := []Finding{
		{ID: "a"}, {ID: "b", Severity: Error}, {ID: "c", Severity: Warn}, {ID: "d", Severity: Error}, {ID: "e"},
	}
	if got := Count(list).String(); got != "2 errors, 1 warning, 2 notes" {
		t.Error(got)
	}
	if Count(nil).String() != "" || Count(list).Serious() != 3 {
		t.Error(Count(nil), Count(list))
	}
	if !Serious(list) || Serious(list[:1]) || !AtLeast(list, Error) || AtLeast(list[2:3], Error) || AtLeast(nil, Note) {
		t.Error("Serious or AtLeast")
	}
	slices.SortStableFunc(list, BySeverity)
	var order string
	for _, f := range list {
		order += f.ID
	}
	if order != "bdcae" {
		t.Error(order)
	}
}

func TestQuote(t *testing.T) {
	for q, want := range map[Quote]string{
		{"log", 3, "x"}: "log:3: x", {File: "log", Text: "x"}: "log: x", {Text: "x"}: "x",
	} {
		if q.String() != want {
			t.Errorf("%q, want %q", q, want)
		}
	}
}
