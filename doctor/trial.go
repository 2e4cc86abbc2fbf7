package doctor

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lines"
)

// Trial is a fault that somebody published with its cause, a line of JSON: what
// was seen is shown to the doctor, the cause is compared with what it says.
type Trial struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Hardware string `json:"hardware"`
	Symptom  string `json:"symptom"`
	Evidence struct {
		Log   []string          `json:"log"`
		Facts []string          `json:"facts"`
		Env   map[string]string `json:"env"`
		Topo  string            `json:"topo"`
	} `json:"evidence"`
	Cause  string `json:"cause"`
	Status string `json:"status"` // fixed, diagnosed, suspected, expected
	Kind   string `json:"evidence_kind"`
}

// Outcome is what the doctor said about a fault whose cause is known: a trial, or a thread.
type Outcome struct {
	ID          string   `json:"id"`
	Category    string   `json:"category"` // of a thread, the name of its cause
	Wanted      []string `json:"wanted"`   // findings that state the cause; none: no cause of the program is its
	Said        []string `json:"said"`     // the first findings
	Hit         bool     `json:"hit"`      // one of the wanted is the first, or of a trial among the first two
	Place       int      `json:"place"`    // of the first that is wanted, from 1; 0 none
	Confidence  float64  `json:"confidence,omitempty"`
	Undecidable string   `json:"undecidable,omitempty"` // why the evidence alone cannot tell
}

// MatchTrials reports whether a text holds trials.
func MatchTrials(data []byte) bool {
	head := data[:min(len(data), 1<<14)]
	return bytes.Contains(head, []byte(`"symptom"`)) && bytes.Contains(head, []byte(`"evidence"`)) &&
		bytes.Contains(head, []byte(`"category"`))
}

// ReadTrials reads trials, one a line.
func ReadTrials(name string, r io.Reader) ([]Trial, error) {
	var list []Trial
	in := lines.New(r)
	for in.Next() {
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		var t Trial
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			return nil,
				fmt.Errorf("%s:%d: %w; expected a case with id, category, symptom, evidence and cause", name, in.Num(), err)
		}
		if t.ID == "" {
			return nil, fmt.Errorf("%s:%d: a case without id", name, in.Num())
		}
		list = append(list, t)
	}
	return list, in.Err()
}

// Text is what the doctor is shown: never the cause, the fix or the category.
func (t *Trial) Text() string {
	var b strings.Builder
	put := func(s string) {
		if s != "" {
			b.WriteString(s + "\n")
		}
	}
	put(t.Symptom)
	put(t.Hardware)
	for _, s := range t.Evidence.Log {
		put(s)
	}
	for _, s := range t.Evidence.Facts {
		put(s)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Evidence.Env)) {
		put(k + "=" + t.Evidence.Env[k])
	}
	put(t.Evidence.Topo)
	return b.String()
}

// Prepare makes a trial ready to be weighed: any cause that one of its wanted findings states is right.
func (t *Trial) Prepare(v *evidence.Vocabulary, m *cause.Model) (*cause.Thread, error) {
	set, err := t.set(v)
	if err != nil {
		return nil, err
	}
	c := newCase(set)
	x := &cause.Thread{ID: t.ID, Kind: t.Kind, Case: c.differential(c.detect(m))}
	for _, k := range m.Causes() {
		if slices.ContainsFunc(wanted(t), k.Finds) {
			x.Accept = append(x.Accept, k.ID)
		}
	}
	return x, nil
}

func (t *Trial) set(v *evidence.Vocabulary) (*evidence.Set, error) {
	r := v.NewReader()
	if err := r.Read(t.ID, strings.NewReader(t.Text())); err != nil {
		return nil, err
	}
	return r.Set()
}

// Try examines a trial.
func Try(v *evidence.Vocabulary, t *Trial) (Outcome, error) {
	o := Outcome{
		ID: t.ID, Category: t.Category, Wanted: wanted(t), Said: []string{}, Undecidable: wantedRows()[t.ID].Undecidable,
	}
	set, err := t.set(v)
	if err != nil {
		return o, err
	}
	for i, f := range Examine(set).Findings {
		if i < 5 {
			o.Said = append(o.Said, f.ID)
		}
		if o.Place == 0 && slices.Contains(o.Wanted, f.ID) && (t.Status == "expected") == (f.Severity == finding.Note) {
			o.Place = i + 1
		}
	}
	o.Hit = o.Place == 1 || o.Place == 2
	return o, nil
}

// Tables of the package: what operators ask of a machine, what lowers a peak, and which findings state the causes of
// trials.
var (
	//go:embed thresholds.csv
	thresholdTable string
	//go:embed mechanisms.csv
	mechanismTable string
	//go:embed wanted.csv
	wantedTable string
)

// wantedRow says which findings state the cause of a category of trials, or beside that of one trial, because its own
// words name them; or why the evidence of a trial leaves its cause open.
type wantedRow struct {
	Name        string   `csv:"name"`
	Findings    []string `csv:"findings,optional"`
	Undecidable string   `csv:"undecidable,optional"`
}

var wantedRows = sync.OnceValue(func() map[string]wantedRow {
	list := map[string]wantedRow{}
	for _, r := range csvtable.Must[wantedRow]("wanted.csv", wantedTable) {
		list[r.Name] = r
	}
	return list
})

// wanted are the findings that state the cause of a trial.
func wanted(t *Trial) []string {
	list := wantedRows()[t.Category].Findings
	return slices.Concat([]string{}, list, wantedRows()[t.ID].Findings)
}

// testsApart are the lines that show processes of nccl-tests which know nothing of
// each other: one command made several of them and each prints a header, a table
// and ranks from 0 on.
func (c *Case) testsApart() []finding.Quote {
	if c.ranks > 1 && c.hosts > 1 {
		return nil
	}
	started := 0
	for _, o := range c.All(evidence.Launched) {
		started = max(started, atoi(o.Arg(0)))
	}
	seen := max(c.Count(evidence.TestHeader), c.Count(evidence.Average))
	if started > 1 && len(c.All(evidence.Launched)) == 1 && seen == started {
		return c.quotes(evidence.Launched, evidence.TestHeader, evidence.Average, evidence.TestRank)
	}
	if o := c.First(evidence.TestHeader); o != nil && c.headersTogether(o) {
		return c.quotes(o, evidence.TestRank)
	}
	var zero []*evidence.Observation
	top, count := 0, map[string]int{}
	for _, o := range c.All(evidence.TestRank) {
		top = max(top, atoi(o.Arg(0)))
		count[o.Arg(1)]++
		if o.Arg(0) == "0" {
			zero = append(zero, o)
		}
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	if len(zero) < 2 || top >= most || zero[0].Quotes[0].File != zero[1].Quotes[0].File ||
		!c.Told && !c.Has(evidence.Launched) && c.tableDrop() == 0 && c.First(evidence.Average, "0") == nil {
		return nil
	}
	return c.quotes(zero[0], zero[1], evidence.Average)
}

// headersTogether reports two equal headers of nccl-tests with no device between them:
// two processes began at once, of which each takes itself for the first.
func (c *Case) headersTogether(o *evidence.Observation) bool {
	for i := 1; i < len(o.Quotes); i++ {
		a, b := o.Quotes[i-1], o.Quotes[i]
		if a.File == b.File && a.Text == b.Text && b.Line-a.Line <= 4 && !c.between(a, b) {
			return true
		}
	}
	return false
}

// between reports a device of nccl-tests' list that stands between two lines.
func (c *Case) between(a, b finding.Quote) bool {
	for _, o := range c.All(evidence.TestRank) {
		for _, q := range o.Quotes {
			if q.File == a.File && q.Line > a.Line && q.Line < b.Line {
				return true
			}
		}
	}
	return false
}
