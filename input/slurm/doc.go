// Package slurm reads what Slurm knows about a cluster and writes networks in
// Slurm's forms: topology.conf (tree and block), topology.yaml, the output of
// "scontrol show topology", and node lists with their GPUs ("scontrol show
// node", "sinfo -N" with a GRES column, the NodeName lines of slurm.conf).
//
// Switches become switches with a tier, blocks become groupings (Domain). Slurm
// knows who is near whom and no rates: LinkSpeed has no unit and is dropped.
// Include lines are not followed. A line that cannot be used is a warning; a
// loop of switches and a text with nothing of Slurm's in it are errors.
package slurm

import (
	"io"
	"iter"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// maxBytes bounds what is read. The largest real files are a few megabytes, but
// they may lie inside a long log.
const maxBytes = 512 << 20

// readText reads everything up to the limit.
func readText(name string, r io.Reader) (string, error) {
	data, err := lines.Whole(name, r, maxBytes, "cut out the part that Slurm wrote")
	return string(data), err
}

// line is one line of a text: its number, and its text without what terminals
// and launchers put around it.
type line struct {
	num  int
	text string
}

// joinedLines yields the lines of a text that matter, those that end in a backslash with what follows.
func joinedLines(text string, matters func(raw string) bool) iter.Seq[line] {
	return func(yield func(line) bool) {
		for num := 1; len(text) > 0; num++ {
			var raw string
			raw, text, _ = strings.Cut(text, "\n")
			if !matters(raw) {
				continue
			}
			l := line{num, clean(raw)}
			if strings.HasSuffix(l.text, "\\") {
				var joined strings.Builder
				for strings.HasSuffix(l.text, "\\") && len(text) > 0 {
					joined.WriteString(strings.TrimSuffix(l.text, "\\"))
					raw, text, _ = strings.Cut(text, "\n")
					num++
					l.text = clean(raw)
				}
				joined.WriteString(strings.TrimSuffix(l.text, "\\"))
				l.text = joined.String()
			}
			if !yield(l) {
				return
			}
		}
	}
}

func isInclude(s string) bool {
	return len(s) > 8 && strings.EqualFold(s[:7], "include") && (s[7] == ' ' || s[7] == '\t')
}

func clean(raw string) string {
	return strings.TrimRight(lines.Bare(lines.StripANSI(raw)), " \t\r")
}

// field is one Key=Value of a line.
type field struct{ key, val string }

// is compares a key as Slurm does, without regard to case.
func (f field) is(key string) bool { return strings.EqualFold(f.key, key) }

// get returns the value of a key, "" when it is absent or null.
func get(fields []field, key string) string {
	for _, f := range fields {
		if f.is(key) {
			if f.val == "(null)" {
				return ""
			}
			return f.val
		}
	}
	return ""
}

var (
	// fieldForm is Key=Value, also with white space around = and with quotes around the value, else a word.
	fieldForm  = lazyre.New(`^(?:([\w.]+)([ \t]*)=([ \t]*)(?:"([^"]*)"|([^ \t]*))|[^ \t]+)`)
	startField = lazyre.New(`^[\w.]+=`)
)

// cutFields cuts a line into fields. A word without = belongs to the value before it ("OS=Linux 6.1 #1 SMP"), and is
// kept only of a reason; loose says that there are others.
func cutFields(s string) (out []field, loose bool) {
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		m := fieldForm.FindStringSubmatch(s)
		end := len(m[0])
		switch last := len(out) - 1; {
		case m[1] == "" && last >= 0 && out[last].is("Reason"):
			out[last].val += " " + m[0]
		case m[1] == "":
			loose = true
		// "Reason= Weight=1": the next word is a field of its own
		case m[2] == "" && m[3] != "" && startField.MatchString(m[5]):
			out = append(out, field{m[1], ""})
			end -= len(m[5])
		default:
			out = append(out, field{m[1], m[4] + m[5]})
		}
		s = s[end:]
	}
	return out, loose
}

// hostlist is a list as Slurm reads it: names left empty between commas do
// not count.
func hostlist(list string) string {
	list = strings.Trim(list, ", \t")
	for strings.Contains(list, ",,") {
		list = strings.ReplaceAll(list, ",,", ",")
	}
	return list
}

func hosts(b *cluster.Budget, list string) ([]string, error) {
	if list = hostlist(list); list == "" {
		return nil, nil
	}
	return b.ParseHosts(list)
}
