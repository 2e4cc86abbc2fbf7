// Package budget counts what a checkout weighs and holds it to budget.txt: code that is added somewhere has to fit, and
// what was taken out stays out. It counts tokens of Go, because they do not shrink when lines are joined.
package budget

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Counts is how much there is of each thing: "tokens engine", "lines .js", "flags predict".
type Counts map[string]int

// The share of the code's tokens that tests have: they may grow as the code does, and are never thinned to make room.
const leastTests, mostTests = 0.5, 0.8

// generated is the line that tools know generated code by (go help generate).
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Checkout counts the files of a checkout that git knows or would take. Generated Go, testdata and what is vendored are
// not ours to weigh.
func Checkout(root string) (Counts, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	c := Counts{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || strings.Contains("/"+name, "/testdata/") || strings.Contains("/"+name, "/vendor/") {
			continue // also a file that is deleted and not yet committed
		}
		c.addFile(name, data)
	}
	return c, nil
}

func (c Counts) addFile(name string, data []byte) {
	top, _, _ := strings.Cut(name, "/")
	switch ext := filepath.Ext(name); ext {
	case ".yaml", ".yml", ".csv", ".json", ".jsonl", ".tmpl":
		catalogue := ext == ".csv" && filepath.Base(filepath.Dir(name)) == "data" // rows follow what is sold and released
		if !catalogue && top != "docs" && top != "packaging" && top != ".github" {
			c["bytes of embedded data"] += len(data)
		}
	case ".md":
		c["words of documents"] += len(bytes.Fields(data))
	case ".s", ".js", ".py", ".c":
		c["lines "+ext] += bytes.Count(data, []byte("\n"))
	case ".go":
		if !generated.Match(data[:min(len(data), 400)]) {
			c.addGo(top, name, data)
		}
	}
}

// addGo counts one file of Go. Tools are modules of their own: they have a line, and are no part of all.
func (c Counts) addGo(top, name string, data []byte) {
	n := countTokens(data)
	test := strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/test/")
	if top != "tools" {
		key := "tokens all"
		if test {
			key = "tests"
		}
		c[key] += n
	}
	if test {
		return
	}
	c["tokens "+top] += n
	for line := range bytes.Lines(data) {
		if len(line) > 121 {
			c["lines over 120 bytes"]++
		}
	}
	if top == "query" {
		c["hidden JSON fields"] += bytes.Count(data, []byte("`json:\"-\""))
		c["exported types of query"] += exportedTypes(name, data)
	}
}

func countTokens(data []byte) (n int) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(data)), data, nil, 0)
	for {
		switch _, tok, text := s.Scan(); {
		case tok == token.EOF:
			return n
		case tok == token.SEMICOLON && text == "\n": // the scanner's own, at the end of a line
		default:
			n++
		}
	}
}

func exportedTypes(name string, data []byte) (n int) {
	f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
	if err != nil {
		return 0
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				if s.(*ast.TypeSpec).Name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// Read reads a budget: a line for each thing, its name and the most there may be of it. Lines that begin with # say
// why.
func Read(data []byte) (Counts, error) {
	c := Counts{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(line[i+1:])
		if i < 0 || err != nil {
			return nil, fmt.Errorf("budget.txt: %q; expected a name and a number", line)
		}
		name := strings.TrimSpace(line[:i])
		if _, twice := c[name]; twice {
			return nil, fmt.Errorf("budget.txt: %s stands there twice", name)
		}
		c[name] = n
	}
	return c, nil
}

// Over lists what does not fit: more than its line allows, or without a line, and tests out of proportion to the code.
func (most Counts) Over(now Counts) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		limit, known := most[k]
		switch {
		case k == "tests":
		case !known:
			list = append(list, fmt.Sprintf("%s: %d, and budget.txt has no line for it", k, now[k]))
		case now[k] > limit:
			list = append(list, fmt.Sprintf("%s: %d, at most %d: take out %d, here or where you lower another line by as much",
				k, now[k], limit, now[k]-limit))
		}
	}
	if share := float64(now["tests"]) / float64(max(1, now["tokens all"])); share < leastTests || share > mostTests {
		list = append(list, fmt.Sprintf("tests are %.2f of the code's tokens; expected %g to %g", share, leastTests,
			mostTests))
	}
	return list
}

// Lowered is a budget with every line that allows more than there is brought down to it, and lines of what is gone
// left out. It never raises one.
func (most Counts) Lowered(now Counts) Counts {
	next := Counts{}
	for k, limit := range most {
		if n, ok := now[k]; ok {
			next[k] = min(n, limit)
		}
	}
	return next
}

const head = `# The most that the checkout may hold; TestBudget of cmd/busbar counts and compares. make update lowers a line when something
# shrank, and never raises one. Who raises a line by hand lowers another by as much in the same commit, or says in its message
# why the whole must grow. Tokens are those of Go without comments, tests and generated files; tools are modules of their own.
`

// Text is a budget as budget.txt has it: the heaviest first in each group.
func (most Counts) Text() string {
	group := func(k string) int {
		word, _, _ := strings.Cut(k, " ")
		return slices.Index([]string{"flags", "lines", "tokens"}, word)
	}
	keys := slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(group(b)-group(a), most[b]-most[a], strings.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString(head)
	last := -2
	for _, k := range keys {
		if k == "tests" {
			continue
		}
		if g := group(k); g != last {
			b.WriteByte('\n')
			last = g
		}
		fmt.Fprintf(&b, "%-28s %9d\n", k, most[k])
	}
	return b.String()
}
