package query

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/yamldoc"
)

// Ignoring is a file of findings that are known and accepted for a time.
type Ignoring struct {
	Ignore string `page:"-" placeholder:"FILE" help:"Leave out the findings of this file: a YAML list of finding (its id), where (optional), reason, and until: the last day, in UTC, on which it is left out."`
}

// Ignored is a finding that was left out.
type Ignored struct {
	ID     string `json:"id"`
	Where  string `json:"where,omitempty"`
	Reason string `json:"reason"`
	Until  string `json:"until"` // the last day on which it is left out
}

// ignoreRule is an entry of the file.
type ignoreRule struct {
	Ignored
	line  int
	end   time.Time
	glob  *regexp.Regexp // of the place; nil for all
	hosts []string       // that the place names, as a hostlist
}

// mostIgnored bounds the entries of a file.
const mostIgnored = 10_000

// left takes the findings of the file out of a list.
func (q *Ignoring) left(ctx context.Context, env *Env,
	list []finding.Finding,
) (kept []finding.Finding, out []Ignored, err error) {
	if q.Ignore == "" {
		return list, nil, nil
	}
	text, err := env.readWhole(q.Ignore, "a YAML list of finding, where, reason and until")
	var rules []ignoreRule
	if err == nil {
		rules, err = parseIgnores(env.budget(ctx), string(text))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--ignore %s: %w", q.Ignore, err)
	}
	now := env.now()
	used := make([]bool, len(rules))
	kept = []finding.Finding{}
	for _, f := range list {
		holds := func(r ignoreRule) bool { return r.about(f) && !now.After(r.end) }
		at := slices.IndexFunc(rules, holds) // one that was renewed before one that has ended
		if at < 0 {
			at = slices.IndexFunc(rules, func(r ignoreRule) bool { return r.about(f) })
		}
		switch {
		case at < 0:
			kept = append(kept, f)
		case now.After(rules[at].end):
			used[at] = true
			kept = append(kept, f)
			env.note(fmt.Sprintf("%s:%d: %s was left out until %s, and is reported again", q.Ignore, rules[at].line, f.ID,
				rules[at].Until))
		default:
			used[at] = true
			out = append(out, Ignored{ID: f.ID, Where: f.Where, Reason: rules[at].Reason, Until: rules[at].Until})
		}
	}
	for i, r := range rules {
		if !used[i] && !now.After(r.end) {
			env.note(fmt.Sprintf("%s:%d: nothing was found that this entry for %s leaves out", q.Ignore, r.line, r.ID))
		}
	}
	return kept, out, nil
}

// parseIgnores reads the file.
func parseIgnores(b *cluster.Budget, text string) ([]ignoreRule, error) {
	hosts := 0
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 || docs[0].Kind != yamldoc.List || len(docs[0].Items) > mostIgnored {
		return nil, fmt.Errorf("expected one YAML list of up to %d entries with finding, reason and until", mostIgnored)
	}
	var list []ignoreRule
	for _, item := range docs[0].Items {
		r := ignoreRule{line: item.LineNum()}
		fields := map[string]*string{"finding": &r.ID, "where": &r.Where, "reason": &r.Reason, "until": &r.Until}
		for _, f := range item.Items {
			if item.Kind != yamldoc.Map || fields[f.Key] == nil || f.Kind != yamldoc.Scalar {
				return nil, fmt.Errorf("line %d: %q; expected finding, where, reason and until, each a text", f.LineNum(), f.Key)
			}
			if *fields[f.Key] != "" {
				return nil, fmt.Errorf("line %d: %s is given twice", f.LineNum(), f.Key)
			}
			*fields[f.Key] = f.Str()
		}
		if r.ID == "" || strings.TrimSpace(r.Reason) == "" {
			return nil, fmt.Errorf("line %d: expected a finding's id and a reason", r.line)
		}
		day, err := time.Parse(time.DateOnly, r.Until)
		if err != nil {
			return nil, fmt.Errorf("line %d: until: %q; expected a date, such as 2027-03-31", r.line, r.Until)
		}
		if !utf8.ValidString(r.Where) {
			return nil, fmt.Errorf("line %d: where: %q; expected text", r.line, r.Where)
		}
		if r.Where != "" {
			r.glob = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(r.Where), `\*`, ".*") + "$")
			if r.hosts, _ = b.ParseHosts(r.Where); len(r.hosts) > 0 { // what is no hostlist is a place
				if hosts += len(r.hosts); hosts > mostIgnored {
					return nil, fmt.Errorf("line %d: %d hosts by now; expected at most %d", r.line, hosts, mostIgnored)
				}
			}
		}
		r.end = day.AddDate(0, 0, 1)
		list = append(list, r)
	}
	return list, nil
}

// about tells that an entry leaves a finding out: its id, or its kind for all places of it, at a place as the finding
// names it, or on all nodes that the finding is about.
func (r *ignoreRule) about(f finding.Finding) bool {
	kind, _, _ := strings.Cut(f.ID, ":")
	if r.ID != f.ID && r.ID != kind {
		return false
	}
	if r.Where == "" || r.glob.MatchString(f.Where) {
		return true
	}
	about := f.Nodes
	if len(about) == 0 {
		list, _, _ := strings.Cut(f.Where, "/")
		about, _ = cluster.ParseHosts(list)
	}
	return len(r.hosts) > 0 && len(about) > 0 &&
		!slices.ContainsFunc(about, func(n string) bool { return !slices.Contains(r.hosts, n) })
}
