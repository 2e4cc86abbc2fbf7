// Package nodehealth reads what other health checks of a node say: the states of gpud (/v1/states) and the verdict of
// NVIDIA Health Validation. What is not well becomes a finding with the other's own words and advice; this package
// judges nothing.
//
// Of the verdict it reads what its published schema names: overall_severity, and the affected components wherever they
// are.
package nodehealth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/finding"
)

// Bounds on what one document may hold.
const (
	maxFindings = 10_000
	maxText     = 2000
	maxDepth    = 16
)

// sure is how certain such a finding counts: a check of its own found it, and it cannot be asked again.
const sure = 0.8

// MatchGpud reports a list of gpud's components with their states, or the beginning of one.
func MatchGpud(data []byte) bool {
	t := bytes.TrimSpace(data)
	return bytes.HasPrefix(t, []byte("[")) && bytes.Contains(t, []byte(`"component"`)) &&
		bytes.Contains(t, []byte(`"states"`)) && bytes.Contains(t, []byte(`"health"`))
}

// MatchVerdict reports a verdict of NVIDIA Health Validation.
func MatchVerdict(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && bytes.Contains(data, []byte(`"overall_severity"`))
}

// ReadGpud reads gpud's states: Unhealthy is an error, Degraded a warning.
func ReadGpud(name string, r io.Reader) ([]finding.Finding, error) {
	var list []struct {
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
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w; expected the JSON list of gpud's /v1/states", name, err)
	}
	found := []finding.Finding{}
	for _, c := range list {
		for _, s := range c.States {
			severity, bad := severities[s.Health] // others are Healthy and Initializing
			if !bad {
				continue
			}
			text := words("gpud: "+c.Component+" is "+s.Health, s.Reason, s.Error)
			found = append(found, of("gpud-"+c.Component, severity, text,
				words(s.Suggest.Description, strings.Join(s.Suggest.Actions, ", "))))
		}
	}
	return found, bounded(name, found)
}

// ReadVerdict reads a verdict: critical is an error, a warning one, unknown a note.
func ReadVerdict(name string, r io.Reader) ([]finding.Finding, error) {
	var doc map[string]any
	if err := json.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: %w; expected the JSON verdict of NVIDIA Health Validation", name, err)
	}
	overall, ok := doc["overall_severity"].(string)
	if !ok {
		return nil, fmt.Errorf("%s: no overall_severity; expected the JSON verdict of NVIDIA Health Validation", name)
	}
	found := []finding.Finding{}
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth > maxDepth || len(found) > maxFindings {
			return
		}
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x, depth+1)
			}
		case map[string]any:
			checks, listed := v["check_ids"].([]any)
			worst, _ := v["max_severity"].(string)
			if severity, bad := severities[strings.ToUpper(worst)]; listed && bad {
				category, _ := v["category"].(string)
				entities, _ := v["entities"].([]any)
				found = append(found, of("health-validation-"+strings.ToLower(category), severity,
					words("NVIDIA Health Validation: "+category+" is "+worst, joined(checks), joined(entities)), ""))
			}
			for _, x := range v {
				if _, deep := x.(string); !deep {
					walk(x, depth+1)
				}
			}
		}
	}
	walk(doc, 0)
	if severity, bad := severities[strings.ToUpper(overall)]; bad && len(found) == 0 {
		found = append(found, of("health-validation", severity, "NVIDIA Health Validation: the node is "+overall, ""))
	}
	slices.SortFunc(found, func(a, b finding.Finding) int { return strings.Compare(a.Text, b.Text) }) // maps have no order
	return found, bounded(name, found)
}

// severities are what gpud's states and the schema's severities are here; what is not in it is not wrong.
var severities = map[string]finding.Severity{
	"Unhealthy": finding.Error, "Degraded": finding.Warn, "CRITICAL": finding.Error, "WARNING": finding.Warn,
	"UNKNOWN": finding.Note,
}

func of(id string, s finding.Severity, text, fix string) finding.Finding {
	id = strings.ToLower(clip(id, 100))
	return finding.Finding{ID: id, Kind: finding.Kind(id), Severity: s, Confidence: sure, Text: text, Fix: fix}
}

// words joins what is not empty.
func words(list ...string) string {
	out := ""
	for _, w := range list {
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

func bounded(name string, found []finding.Finding) error {
	if len(found) > maxFindings {
		return fmt.Errorf("%s: more than %d results that are not well; expected those of one node", name, maxFindings)
	}
	return nil
}
