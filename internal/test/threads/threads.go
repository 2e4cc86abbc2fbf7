// Package threads reads public reports of faults whose cause is known, for tests of the doctor.
package threads

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/csvtable"
)

// Case is a report: what it says, and the causes that answer it.
type Case struct {
	ID, Source string
	Text       string // what the report says: never the cause or the fix
	Why        string // its cause and its fix
	Accept     []string
	Category   string // or the key of its cause
	Expected   bool   // nothing was wrong
	Undecided  string // why the evidence alone cannot tell
}

// Thread is a report in our own words, as testdata/cases/README.md describes it.
type Thread struct {
	ID, Project, Source string
	Circumstances       struct {
		GPU, Fabric, Cloud, NCCL, Framework *string
		Nodes                               *json.RawMessage // a number, or a text such as 64+
		Container, VM                       *bool
	}
	Symptom      string
	Observations []struct{ What, Kind, Polarity, Scope string }
	Fragments    []string
	Cause        string
	CauseKey     string `json:"cause_key"`
	Fix          string
	ConfirmedBy  string `json:"confirmed_by"`
	Status       string
	Known        []string `json:"known_before_answer"`
}

// folder is that of the doctor's data: tests run in the folder of their package.
func folder() string {
	dir := "."
	for range 6 {
		if name := filepath.Join(dir, "doctor", "testdata"); isDir(name) {
			return name
		}
		dir = filepath.Join(dir, "..")
	}
	return "testdata"
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func lines[T any](t testing.TB, name string) (list []T) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var x T
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v in %.80s", name, err, line)
		}
		list = append(list, x)
	}
	return list
}

// Threads are those of a file of testdata/cases.
func Threads(t testing.TB, name string) []Thread {
	t.Helper()
	return lines[Thread](t, filepath.Join(folder(), "cases", name))
}

// said are the words by which a report would say an observation's polarity.
var said = map[string]string{
	"tried-helped": ": tried, it helped", "tried-no-effect": ": tried without effect",
	"stated-ok": ": stated to be in order",
}

// Text is what a report would say: never the cause, the fix or the key.
func (x *Thread) Text() string {
	var about []string
	for _, p := range []*string{
		x.Circumstances.GPU, x.Circumstances.Fabric, x.Circumstances.Cloud, x.Circumstances.Framework,
	} {
		if p != nil && *p != "" {
			about = append(about, *p)
		}
	}
	if p := x.Circumstances.NCCL; p != nil && *p != "" {
		about = append(about, "NCCL "+*p)
	}
	if p := x.Circumstances.Container; p != nil && *p {
		about = append(about, "in a container")
	}
	if p := x.Circumstances.VM; p != nil && *p {
		about = append(about, "in a VM")
	}
	list := []string{x.Symptom}
	if len(about) > 0 {
		list = append(list, "This is on "+strings.Join(about, " and "))
	}
	for _, o := range x.Observations {
		list = append(list, o.What+said[o.Polarity])
	}
	return strings.Join(append(list, x.Fragments...), "\n") + "\n"
}

// Cases are the threads of a file of testdata/cases.
func Cases(t testing.TB, name string) (list []Case) {
	t.Helper()
	keys := map[string][]string{}
	for _, r := range table[struct {
		Key    string   `csv:"key"`
		Causes []string `csv:"causes,optional"`
	}](t, "keys.csv") {
		keys[r.Key] = r.Causes
	}
	for _, x := range Threads(t, name) {
		accept, ok := keys[x.CauseKey]
		if !ok { // the key is the causes themselves
			accept = strings.Split(x.CauseKey, "|")
		}
		list = append(list, Case{
			ID: x.ID, Source: x.Source, Text: x.Text(), Why: x.Cause + ". " + x.Fix, Accept: accept,
			Category: x.CauseKey,
		})
	}
	return list
}

func table[T any](t testing.TB, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(), name))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csvtable.Read[T](string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// trial is a fault that somebody published with its cause.
type trial struct {
	ID, Category, Hardware, Symptom string
	Source                          any
	Evidence                        struct {
		Log, Facts []string
		Env        map[string]string
		Topo       string
	}
	Cause, Fix, Status string
}

// Trials are published faults: those of a file, or with no name our own.
func Trials(t testing.TB, name string) (list []Case) {
	t.Helper()
	type row struct {
		Name        string   `csv:"name"`
		Findings    []string `csv:"findings,optional"`
		Undecidable string   `csv:"undecidable,optional"`
	}
	wanted := map[string]row{}
	for _, r := range table[row](t, "wanted.csv") {
		wanted[r.Name] = r
	}
	if name == "" {
		name = filepath.Join(folder(), "trials.jsonl")
	}
	for _, x := range lines[trial](t, name) {
		said := slices.Concat([]string{x.Symptom, x.Hardware}, x.Evidence.Log, x.Evidence.Facts)
		for k, v := range x.Evidence.Env {
			said = append(said, k+"="+v)
		}
		said = slices.DeleteFunc(append(said, x.Evidence.Topo), func(s string) bool { return s == "" })
		source, _ := x.Source.(string)
		if several, ok := x.Source.([]any); ok && len(several) > 0 {
			source, _ = several[0].(string)
		}
		list = append(list, Case{
			ID: x.ID, Source: source, Text: strings.Join(said, "\n") + "\n", Why: x.Cause + ". " + x.Fix,
			Accept:   slices.Concat(wanted[x.Category].Findings, wanted[x.ID].Findings),
			Category: x.Category, Expected: x.Status == "expected", Undecided: wanted[x.ID].Undecidable,
		})
	}
	return list
}
