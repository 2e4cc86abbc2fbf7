package doctor

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// fault names what the audit finds that is broken, not built so or grown old.
const fault = " link-down link-slow host-overrun port-slow port-init pcie-trained-low node-unavailable "

// audited are what the audit of the joined cluster finds, one finding an id. Those
// that a rule has found too are left out. How a machine is built, and counters
// that have grown since its start, are notes unless somebody complains.
func (c *Case) audited(found []finding.Finding) []finding.Finding {
	if c.Cluster == nil {
		return nil
	}
	var list []finding.Finding
	where := map[string][]string{}
	complained := c.tells(told.Slow, told.Hang) || c.broken()
	for _, a := range audit.Run(c.Cluster) {
		where[a.ID] = append(where[a.ID], a.Where)
		if len(where[a.ID]) > 1 || slices.ContainsFunc(found, func(f finding.Finding) bool { return f.ID == a.ID }) {
			continue
		}
		if a.Severity == finding.Warn && !strings.Contains(fault, " "+a.ID+" ") && !complained && a.Evidence == nil {
			a.Severity = finding.Note
		}
		c.how[a.ID] = cause.Agrees
		list = append(list, finding.Finding{
			ID: a.ID, Severity: a.Severity, Title: sentence(a.Text), Cause: a.Text, Fix: a.Fix,
			Evidence: append([]finding.Quote{}, a.Evidence...),
		})
	}
	for _, l := range [][]finding.Finding{list, found} {
		for i := range l {
			w := where[l[i].ID]
			if len(w) == 0 || l[i].Where != "" {
				continue
			}
			if l[i].Where = strings.Join(first(w, 8), ", "); len(w) > 8 {
				l[i].Where += fmt.Sprintf(" and %d more", len(w)-8)
			}
		}
	}
	return list
}

// noted is what readers remark on the texts, which an all-clear must not hide.
func noted(list []cluster.Warning) []finding.Finding {
	var texts []string
	for _, w := range list {
		if w.ID == "" {
			texts = append(texts, w.String())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return []finding.Finding{{
		ID: "map-notes", Severity: finding.Note, Confidence: 1, Evidence: []finding.Quote{},
		Title: words.Plural(len(texts), "remark") + " on what was read", Cause: strings.Join(texts, ". "),
		Fix: "busbar map of the same files lists them",
	}}
}

// sentence is the first part of a text, for a title.
func sentence(s string) string {
	for _, sep := range []string{": ", "; ", ". "} {
		if i := strings.Index(s, sep); i > 20 {
			s = s[:i]
		}
	}
	return s
}
