// Package nodehealth reads what other health checks of a node say: the states of gpud (/v1/states) and the table of
// dcgmi diag. What is not well becomes a finding with the other's own words and advice; this package judges nothing.
package nodehealth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

// sure is how certain such a finding counts: a check of its own found it, and it cannot be asked again.
const sure = 0.8

// MatchGpud reports a list of gpud's components with their states, or the beginning of one.
func MatchGpud(data []byte) bool {
	t := bytes.TrimSpace(data)
	return bytes.HasPrefix(t, []byte("[")) && lines.Has(t, `"component"`, `"states"`, `"health"`)
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
	l := list{what: "gpud", id: "gpud"}
	in := json.NewDecoder(r)
	for n := 0; ; n++ {
		err := l.answer(in)
		if errors.Is(err, io.EOF) && n > 0 {
			return l.whole(), nil
		}
		if err != nil {
			return l.whole(), fmt.Errorf("%s: %w; expected the JSON list of gpud's /v1/states, to its end", name, err)
		}
	}
}

// answer reads one of gpud's.
func (l *list) answer(in *json.Decoder) error {
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
}

// severities are what gpud's states and DCGM's results are here; wells are those of what is well.
var (
	severities = map[string]finding.Severity{
		"unhealthy": finding.Error, "fail": finding.Error, "degraded": finding.Warn, "warn": finding.Warn,
	}
	wells = strings.Split("healthy,initializing,pass,skip,not run", ",")
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

// list is what another check found; id is what its findings begin with.
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
	l.found = append(l.found, result(l.id+id, severity, text, fix))
}

// whole is the list with a word about what was left out.
func (l *list) whole() []finding.Finding {
	if l.more > 0 {
		return append(l.found, result(l.id+"-more", finding.Warn, fmt.Sprintf(
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

func clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
