package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// maxTraced is how many traces a command names; more are in a folder.
const maxTraced = 8

// traced points to the question that reads a profiler's traces: they say where the time of steps goes, not why a job
// fails.
func traced(names []string) []finding.Finding {
	if len(names) == 0 {
		return nil
	}
	list := strings.Join(names[:min(len(names), maxTraced)], " ")
	if len(names) > maxTraced {
		list = "FOLDER"
	}
	return []finding.Finding{{
		ID: "profiler-trace", Severity: finding.Note, Confidence: 1,
		Title: words.Plural(len(names), "trace") + " of a profiler",
		Cause: "It shows how much of a step is computing, exposed communication, copies and idle time, and which rank " +
			"is late. busbar doctor reads it.",
		Fix:      fmt.Sprintf("busbar doctor %s, with -c CLUSTER -m MODEL to compare with the prediction", list),
		Evidence: []finding.Quote{},
	}}
}
