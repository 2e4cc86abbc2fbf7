// Package nodehealth reads what other health checks of a node say: the states of gpud (/v1/states), the verdict of
// NVIDIA Health Validation and the table of dcgmi diag. What is not well becomes a finding with the other's own words
// and advice; this package judges nothing.
//
// Of the verdict it reads what its published schema names: overall_severity, and the affected components wherever they
// are.
package nodehealth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/finding"
	"busbar.dev/internal/lines"
)

// Bounds on what one text may hold.
const (
	maxFindings = 1000
	maxText     = 2000
	maxDepth    = 64
)

// sure is how certain such a finding counts: a check of its own found it, and it cannot be asked again.
const sure = 0.8

// MatchGpud reports a list of gpud's components with their states, or the beginning of one.
func MatchGpud(data []byte) bool {
	t := bytes.TrimSpace(data)
	return bytes.HasPrefix(t, []byte("[")) && lines.Has(t, `"component"`, `"states"`, `"health"`)
}

// MatchVerdict reports a verdict of NVIDIA Health Validation.
func MatchVerdict(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && lines.Has(data, `"overall_severity"`)
}

// component is one of gpud's.
type component struct {
	Component string `json:"component"`
	States    []struct {
		Name    string `json:"name"`
		Health  string `json:"health"`
		Reason  string `json:"reason"`
		Error   string `json:"error"`
		Suggest struct {
			Description string   `json:"description"`
			Actions     []string `json:"repair_actions"`
		} `json:"suggested_actions"`
	} `json:"states"`
}

// ReadGpud reads gpud's states, of several answers one after another: Unhealthy is an error, Degraded a warning. With
// an error it gives what stands before that.
func ReadGpud(name string, r io.Reader) ([]finding.Finding, error) {
	l := list{what: "gpud"}
	return l.answers(name, r, "the JSON list of gpud's /v1/states", func(in *json.Decoder) error {
		t, err := in.Token()
		if err == nil && t != json.Delim('[') {
			err = fmt.Errorf("%v", t)
		}
		for err == nil && in.More() {
			var c component
			err = in.Decode(&c)
			for _, s := range c.States {
				l.add("-"+c.Component, s.Health, ": "+c.Component+" is ",
					words(s.Suggest.Description, strings.Join(s.Suggest.Actions, ", ")), s.Reason, s.Error)
			}
		}
		if err != nil {
			return err
		}
		if _, err = in.Token(); err != nil {
			return fmt.Errorf("the list does not end: %v", err)
		}
		return nil
	})
}

// answers reads one answer after another.
func (l *list) answers(name string, r io.Reader, want string, read func(in *json.Decoder) error) ([]finding.Finding,
	error,
) {
	in := json.NewDecoder(r)
	for n := 0; ; n++ {
		err := read(in)
		if errors.Is(err, io.EOF) && n > 0 {
			return l.whole(), nil
		}
		if err != nil {
			return l.whole(), fmt.Errorf("%s: %w; expected %s, to its end", name, err, want)
		}
	}
}

// ReadVerdict reads verdicts, one after another: critical is an error, warning one, unknown a note. With an error it
// gives what stands before that.
func ReadVerdict(name string, r io.Reader) ([]finding.Finding, error) {
	l := list{what: "NVIDIA Health Validation", id: "health-validation"}
	return l.answers(name, r, "the JSON verdict of NVIDIA Health Validation", func(in *json.Decoder) error {
		var doc map[string]any
		if err := in.Decode(&doc); err != nil {
			return err
		}
		overall, ok := doc["overall_severity"].(string)
		if !ok {
			return errors.New("no overall_severity")
		}
		before := len(l.found)
		err := l.affected(doc, 0)
		if severity, _, bad := judge(overall); bad && !finding.AtLeast(l.found[before:], severity) {
			l.add("", overall, ": the node is ", "")
		}
		return err
	})
}

// affected adds the components that a verdict names.
func (l *list) affected(v any, depth int) (err error) {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			err = cmp.Or(err, l.affected(x, depth+1))
		}
	case map[string]any:
		checks, listed := v["check_ids"].([]any)
		if worst, has := v["max_severity"]; listed && has {
			word, _ := worst.(string)
			category, _ := v["category"].(string)
			entities, _ := v["entities"].([]any)
			l.add("-"+category, word, ": "+category+" is ", "", joined(checks), joined(entities))
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			err = cmp.Or(err, l.affected(v[key], depth+1))
		}
	}
	return err
}

// severities are what gpud's states and the schema's severities are here; wells are those of what is well.
var (
	severities = map[string]finding.Severity{
		"unhealthy": finding.Error, "fail": finding.Error, "degraded": finding.Warn, "warn": finding.Warn,
		"critical": finding.Error,
		"warning":  finding.Warn, "unknown": finding.Note,
	}
	wells = strings.Split("healthy,initializing,pass,info,skip,not run", ",")
)

// judge says what a word means: one that is not known is not well.
func judge(word string) (severity finding.Severity, known, bad bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if slices.Contains(wells, word) {
		return finding.Note, true, false
	}
	if severity, known = severities[word]; !known {
		severity = finding.Warn
	}
	return severity, known, true
}

// list is what another check found; id is what its findings' begin with, where that is not its name.
type list struct {
	what, id string
	found    []finding.Finding
	more     int // for which there was no room
}

// add takes in what is not well.
func (l *list) add(id, word, of, fix string, about ...string) {
	severity, known, bad := judge(word)
	switch {
	case !bad:
		return
	case len(l.found) >= maxFindings:
		l.more++
		return
	case !known:
		word = fmt.Sprintf("%.100q, a word that is not understood", word)
	}
	text := words(append([]string{l.what + of + strings.TrimSpace(word)}, about...)...)
	l.found = append(l.found, result(cmp.Or(l.id, l.what)+id, severity, text, fix))
}

// whole is the list with a word about what was left out.
func (l *list) whole() []finding.Finding {
	if l.more > 0 {
		return append(l.found, result(cmp.Or(l.id, l.what)+"-more", finding.Warn, fmt.Sprintf(
			"%s: %d more results are not well; the first %d are kept", l.what, l.more, maxFindings), ""))
	}
	return l.found
}

func result(id string, s finding.Severity, text, fix string) finding.Finding {
	id = strings.ToLower(clip(words(id), 100))
	return finding.Finding{ID: id, Kind: finding.Kind(id), Severity: s, Confidence: sure, Text: text, Fix: fix}
}

// words joins what is not empty. What a terminal would obey becomes a space.
func words(list ...string) string {
	out := ""
	for _, w := range list {
		w = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return ' '
			}
			return r
		}, clip(w, maxText))
		if w = strings.TrimSpace(w); w != "" && out != "" {
			out += ": "
		}
		out += w
	}
	return clip(out, maxText)
}

func joined(list []any) string {
	var out []string
	for _, x := range list {
		if s, ok := x.(string); ok && len(out) < 16 {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
