package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// A row of docs/seeds.md: what a source document says, its figure, our command, where our figure is in the command's
// JSON, our figure, how far it is off, and why.
const (
	rowText = iota
	rowTheirs
	rowCommand
	rowAt
	rowOurs
	rowOff
	rowWhy
	rowCells
)

// ditto stands for the command of the row above.
const ditto = "″"

// within is the difference from a document's figure that needs no reason, and clearly by how much more or less a figure
// is where a document says that it is.
const (
	within  = 0.10
	clearly = 0.005
)

// TestSeeds runs the command of every row of docs/seeds.md with --json, in a copy of docs/examples, and holds our
// figure and the difference to what the row says. A difference of more than 10%, or another answer, needs a reason in
// its last column.
func TestSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes minutes under the race detector")
	}
	docs := t.TempDir() // a row writes files
	if err := os.CopyFS(docs, os.DirFS("../../docs")); err != nil {
		t.Fatal(err)
	}
	page, err := filepath.Abs("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(docs, "examples"))
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	answers, count, command, before := map[string]any{}, seedCount{}, "", ""
	for i, line := range lines {
		row, ok := parseSeedRow(line)
		if !ok {
			if strings.Contains(line, "`busbar ") && strings.HasPrefix(line, "|") {
				t.Errorf("seeds.md:%d: expected %d cells, the third a command", i+1, rowCells)
			}
			continue
		}
		if row[rowCommand] != ditto {
			command, before = strings.Trim(row[rowCommand], "`"), command
		}
		if err := row.answer(t, command, before, answers); err != nil {
			t.Errorf("seeds.md:%d: %s: %v", i+1, command, err)
			continue
		}
		count.add(row)
		if now := row.String(); now != line {
			if lines[i] = now; !*update {
				t.Errorf("seeds.md:%d:\n%s\nis now\n%s", i+1, line, now)
			}
		}
		if row[rowWhy] == "" && !row.agrees() {
			t.Errorf("seeds.md:%d: %s, off by %s: expected a reason", i+1, row[rowText], row[rowOff])
		}
	}
	head := count.String()
	if i := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "**") }); i < 0 {
		t.Error("seeds.md: expected a line that counts the rows, in bold")
	} else if lines[i] != head {
		if lines[i] = head; !*update {
			t.Errorf("seeds.md:%d: expected %s", i+1, head)
		}
	}
	if count.rows < 100 {
		t.Errorf("%d rows; is the page cut off?", count.rows)
	}
	if text := strings.Join(lines, "\n"); *update && text != string(data) {
		if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeedTables reads the tables of the source documents where they stand, in prose, with doctor and calibrate
// --check: what launched them is read with them, and their points are inside the error bars. Outside are those that
// docs/seeds.md explains: an A100's from 512 KiB to 2 MiB, where its release took trees, and 32 MiB.
func TestSeedTables(t *testing.T) {
	for _, x := range []struct {
		file, cluster, layout string
		points, inside        int
	}{
		{"001_*.txt", "dgx-a100:1", "1x8", 20, 14},
		{"003_*.txt", "lambda-4xh100", "1x4", 48, 48},
	} {
		files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "seeds", x.file))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", x.file, files, err)
		}
		asked := []string{"doctor", files[0], "-c", x.cluster, "--json"}
		if x.layout != "" { // of the second table nothing says the nodes
			asked = append(asked, "-l", x.layout)
		}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.NewReader(""), &stdout, &stderr, asked)
		if code != exitDone {
			t.Errorf("busbar %s: exit %d\n%s%s", strings.Join(asked, " "), code, stdout.String(), stderr.String())
		}
		stdout.Reset()
		asked = append([]string{"calibrate", "--check"}, asked[1:]...)
		if code := run(t.Context(), strings.NewReader(""), &stdout, &stderr, asked); code != exitDone {
			t.Fatalf("busbar %s: exit %d\n%s", strings.Join(asked, " "), code, stderr.String())
		}
		var doc struct {
			Points   int
			Coverage float64
		}
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if inside := int(math.Round(doc.Coverage * float64(doc.Points))); doc.Points != x.points || inside < x.inside {
			t.Errorf("%s: %d of %d points inside their bars, expected %d of %d", x.file, inside, doc.Points, x.inside, x.points)
		}
	}
}

// seedCount is how many rows, and figures and comparisons in them, agree.
type seedCount struct{ rows, compared, figures, near, claims, hold, explained, refuted int }

func (c *seedCount) add(r seedRow) {
	c.rows++
	if r[rowTheirs] != "–" {
		c.compared++
	}
	if _, _, claim := r.claim(); claim {
		c.claims++
		if r.agrees() {
			c.hold++
		}
	} else {
		for _, off := range r.offs() {
			c.figures++
			if math.Abs(off) <= within {
				c.near++
			}
		}
	}
	switch {
	case strings.HasPrefix(r[rowWhy], "refuted"):
		c.refuted++
	case r[rowWhy] != "":
		c.explained++
	}
}

func (c *seedCount) String() string {
	return fmt.Sprintf("**%d rows, %d with an answer of theirs; %d of %d published figures within 10%%; %d of %d claims "+
		"of "+
		"more or less hold; %d rows with a reason, %d refuted; 0 fail.**", c.rows, c.compared, c.near, c.figures, c.hold,
		c.claims, c.explained, c.refuted)
}

// seedRow is the cells of a row.
type seedRow []string

// parseSeedRow cuts a row into its cells.
func parseSeedRow(line string) (seedRow, bool) {
	cells := strings.Split(strings.Trim(line, "|"), " | ")
	if !strings.HasPrefix(line, "| ") || len(cells) != rowCells {
		return nil, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, cells[rowCommand] == ditto || strings.HasPrefix(cells[rowCommand], "`busbar ")
}

func (r seedRow) String() string { return strings.TrimRight("| "+strings.Join(r, " | "), " ") + " |" }

// answer runs the command, unless another row did, and sets our figure and how far it is off. before is the command
// above, whose answer the place may name too.
func (r seedRow) answer(t *testing.T, command, before string, answers map[string]any) error {
	if answers[command] == nil {
		var stdout, stderr bytes.Buffer
		args := append(shellWords(strings.TrimPrefix(command, "busbar ")), "--json")
		if code := run(t.Context(), strings.NewReader(""), &stdout, &stderr, args); code > exitWrong {
			return fmt.Errorf("exit %d\n%s", code, stderr.String())
		}
		var document any
		if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
			return err
		}
		answers[command] = document
	}
	path, unit, _ := strings.Cut(strings.TrimPrefix(r[rowAt], "`"), "`")
	values, err := evaluate(answers[command], answers[before], strings.TrimSpace(path))
	if err != nil {
		return err
	}
	var ours []string
	for _, v := range values {
		ours = append(ours, seedFigure(v))
	}
	r[rowOurs] = strings.TrimSpace(strings.Join(ours, " ") + strings.TrimRight(unit, " "))
	if r[rowTheirs] == "–" {
		r[rowOff] = "–"
		return nil
	}
	return r.compare(values, strings.TrimSpace(unit))
}

// compare sets how far values are off the document's: one difference, or of several how many are near, and the worst.
func (r seedRow) compare(values []any, unit string) error {
	text, ok := strings.CutSuffix(r[rowTheirs], unit)
	if more, limit, claim := r.claim(); claim {
		x, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(limit, unit)), 64)
		have, number := values[0].(float64)
		if err != nil || !number || !ok {
			return fmt.Errorf("%q against %v; expected a number in %q", r[rowTheirs], values[0], unit)
		}
		r[rowOff] = "differs"
		if more && have > x*(1+clearly) || !more && have < x*(1-clearly) {
			r[rowOff] = "holds"
		}
		return nil
	}
	theirs := strings.Fields(text)
	if _, number := values[0].(float64); !number { // a word, or a list of ranks
		r[rowOff] = "differs"
		if strings.TrimSpace(text) == seedFigure(values[0]) {
			r[rowOff] = "same"
		}
		return nil
	}
	if !ok || len(theirs) != len(values) {
		return fmt.Errorf("%q; expected %d figures in %q", r[rowTheirs], len(values), unit)
	}
	var offs []float64
	for i, v := range values {
		have, ok := v.(float64)
		want, err := strconv.ParseFloat(strings.ReplaceAll(theirs[i], ",", ""), 64)
		if err != nil || !ok {
			return fmt.Errorf("%q against %v; expected two numbers", theirs[i], v)
		}
		off := 0.0
		if have != want {
			off = have/want - 1
		}
		offs = append(offs, off)
	}
	var list []string
	for _, off := range offs {
		list = append(list, fmt.Sprintf("%+.0f%%", 100*off))
	}
	r[rowOff] = strings.ReplaceAll(strings.ReplaceAll(strings.Join(list, " "), "+0%", "0%"), "-", "−")
	return nil
}

// claim is what a row says that something is more than, or less than: > 1 ×.
func (r seedRow) claim() (more bool, limit string, is bool) {
	if limit, is = strings.CutPrefix(r[rowTheirs], "> "); is {
		return true, limit, true
	}
	limit, is = strings.CutPrefix(r[rowTheirs], "< ")
	return false, limit, is
}

// offs reads the differences of a row; a word that is the same, or a claim that holds, is off by nothing, another by
// all.
func (r seedRow) offs() (list []float64) {
	for _, word := range strings.Fields(r[rowOff]) {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(strings.Replace(word, "−", "-", 1), "%"), 64)
		switch {
		case err == nil:
			list = append(list, percent/100)
		case word == "same", word == "holds":
			list = append(list, 0)
		case word == "differs":
			list = append(list, 1)
		}
	}
	return list
}

func (r seedRow) agrees() bool {
	return !slices.ContainsFunc(r.offs(), func(off float64) bool { return math.Abs(off) > within })
}

// seedFigure prints a value of a document: numbers with three digits, lists as JSON.
func seedFigure(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if a := math.Abs(v); a >= 1000 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// shellWords cuts a command line at spaces that are not in double quotes.
func shellWords(line string) (list []string) {
	quoted := false
	for _, word := range strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	}) {
		list = append(list, strings.ReplaceAll(word, `"`, ""))
	}
	return list
}

// evaluate works out paths and numbers with + - * / between them, from left to right, over all values that a [*] gives.
// A path behind ″ is one of the document before.
func evaluate(document, before any, expression string) ([]any, error) {
	words := operator.Split(expression, -1)
	signs := operator.FindAllString(expression, -1)
	var values []any
	for i := range words {
		var next []any
		in := document
		word, above := strings.CutPrefix(words[i], ditto)
		if above {
			in = before
		}
		if x, err := strconv.ParseFloat(word, 64); err == nil {
			next = []any{x}
		} else if next, err = lookup(in, word); err != nil {
			return nil, err
		}
		if i == 0 {
			values = next
			continue
		}
		if len(next) != 1 && len(next) != len(values) {
			return nil, fmt.Errorf("%s: %d values, expected one or %d", words[i], len(next), len(values))
		}
		for k := range values {
			a, isNumber := values[k].(float64)
			b, isToo := next[min(k, len(next)-1)].(float64)
			if !isNumber || !isToo {
				return nil, fmt.Errorf("%s: expected numbers", expression)
			}
			values[k] = map[string]float64{"+": a + b, "-": a - b, "*": a * b, "/": a / b}[strings.TrimSpace(signs[i-1])]
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%q gives nothing", expression)
	}
	return values, nil
}

// operator stands between the terms of an expression; names have spaces too.
var operator = regexp.MustCompile(` [-+*/] `)

var pathPart = regexp.MustCompile(`\[[^\]]*\]|[^.\[\]]+`)

// lookup follows a path: names with dots between them, [2], [*] for all, [layout=2x2,algo=ring] for the first such,
// [*lanes=1/4] for all that have one of the values, at the end # for how many there are and ~ for the mean of all.
func lookup(document any, path string) ([]any, error) {
	at := []any{document}
	for _, part := range pathPart.FindAllString(strings.TrimRight(path, "#~"), -1) {
		var next []any
		for _, v := range at {
			found, err := follow(v, part)
			if err != nil {
				return nil, fmt.Errorf("%s at %s: %w", path, part, err)
			}
			next = append(next, found...)
		}
		at = next
	}
	if strings.HasSuffix(path, "~") {
		sum := 0.0
		for _, v := range at {
			x, ok := v.(float64)
			if !ok {
				return nil, fmt.Errorf("%s: expected numbers", path)
			}
			sum += x
		}
		at = []any{sum / float64(len(at))}
	}
	if strings.HasSuffix(path, "#") {
		list, ok := at[0].([]any)
		if !ok {
			return nil, fmt.Errorf("%s: expected a list to count", path)
		}
		at = []any{float64(len(list))}
	}
	return at, nil
}

func follow(v any, part string) ([]any, error) {
	inside, index := strings.CutPrefix(strings.TrimSuffix(part, "]"), "[")
	if !index {
		object, _ := v.(map[string]any)
		value, ok := object[part]
		if !ok {
			return nil, fmt.Errorf("there is no such field")
		}
		return []any{value}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("expected a list")
	}
	if i, err := strconv.Atoi(inside); err == nil {
		if i < 0 || i >= len(list) {
			return nil, fmt.Errorf("it has %d elements", len(list))
		}
		return list[i : i+1], nil
	}
	conditions, all := strings.CutPrefix(inside, "*")
	var found []any
	for _, element := range list {
		if meets(element, conditions) {
			found = append(found, element)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no element has that")
	case !all:
		found = found[:1]
	}
	return found, nil
}

// meets reports whether an element has one of the values of each field: lanes=1/4,family=infiniband.
func meets(element any, conditions string) bool {
	for pair := range strings.SplitSeq(conditions, ",") {
		key, want, some := strings.Cut(pair, "=")
		if !some {
			continue
		}
		value, err := lookup(element, key)
		if err != nil || !slices.Contains(strings.Split(want, "/"), seedFigure(value[0])) {
			return false
		}
	}
	return true
}
