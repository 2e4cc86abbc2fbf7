package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/doctor/evidence"
	"busbar.dev/internal/texttab"
)

// examined grades the doctor when the file holds faults with their causes; false
// when it holds something else. Standard input is left to the others, for it can
// be read only once.
func (c *validateCmd) examined(e *env) (bool, error) {
	if len(c.Files) != 1 || c.Files[0] == "-" {
		return false, nil
	}
	data, err := e.measuredText(c.Files[0])
	if err != nil {
		return true, err
	}
	if !doctor.MatchTrials(data) {
		return false, nil
	}
	return true, c.trials(e, c.Files[0], data)
}

// trials examines published faults and compares what the doctor says with their
// causes.
func (c *validateCmd) trials(e *env, name string, data []byte) error {
	list, err := doctor.ReadTrials(inputName(name), bytes.NewReader(data))
	if err != nil {
		return err
	}
	var out []doctor.Outcome
	words := evidence.NewVocabulary()
	for i := range list {
		if c.Class != "" && c.Class != list[i].Category {
			continue
		}
		o, err := doctor.Try(words, &list[i])
		if err != nil {
			return fmt.Errorf("%s: %w", list[i].ID, err)
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		return fmt.Errorf("%s: no cases of class %q in it", inputName(name), c.Class)
	}
	if c.JSON {
		return writeIndented(e.stdout, trialsDocument(out))
	}
	return printTrials(e.stdout, out, c.Rows || c.Verbose)
}

// trialJSON is one case in the JSON of validate.
type trialJSON struct {
	ID          string   `json:"id"`
	Category    string   `json:"category"`
	Wanted      []string `json:"wanted"`
	Said        []string `json:"said"`
	Hit         bool     `json:"hit"`
	Undecidable string   `json:"undecidable,omitempty"`
}

func trialsDocument(out []doctor.Outcome) any {
	decidable, hits := tally(out)
	rows := []trialJSON{}
	for _, o := range out {
		rows = append(rows, trialJSON{o.Trial.ID, o.Trial.Category, orEmpty(o.Wanted), orEmpty(o.Said), o.Hit, o.Undecidable})
	}
	return map[string]any{"cases": len(out), "decidable": decidable, "hits": hits, "share": float64(hits) / float64(max(decidable, 1)), "rows": rows}
}

// tally counts the cases that can be decided, and of those the ones whose cause is
// among the first two findings.
func tally(out []doctor.Outcome) (decidable, hits int) {
	for _, o := range out {
		if o.Undecidable != "" {
			continue
		}
		decidable++
		if o.Hit {
			hits++
		}
	}
	return decidable, hits
}

func printTrials(w io.Writer, out []doctor.Outcome, all bool) error {
	decidable, hits := tally(out)
	fmt.Fprintf(w, "%d cases, %d decidable from their evidence; the cause is among the first two findings in %d (%.0f%%)\n", len(out), decidable, hits, 100*float64(hits)/float64(max(decidable, 1)))
	t := &texttab.Table{}
	t.Row("", "case", "category", "first findings", "")
	for _, o := range out {
		mark := "miss"
		note := ""
		switch {
		case o.Undecidable != "" && o.Hit:
			mark, note = "(hit)", "not counted: "+o.Undecidable
		case o.Undecidable != "":
			mark, note = "open", o.Undecidable
		case o.Hit:
			mark = "hit"
		case o.Place > 0:
			note = fmt.Sprintf("the cause is finding %d", o.Place)
		}
		if all || mark == "miss" || mark == "open" {
			t.Row(mark, o.Trial.ID, o.Trial.Category, strings.Join(o.Said[:min(len(o.Said), 3)], " "), note)
		}
	}
	if t.Len() > 1 {
		fmt.Fprintln(w)
		return t.Write(w)
	}
	return nil
}
