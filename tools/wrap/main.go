// Wrap ends the lines of Go files at 120 bytes and formats them with gofumpt. It fills lines instead of writing one
// argument a line: what is long stays readable on a screen and adds few tokens. What is one raw string, a struct tag
// among them, stays as it is, because only its author can make it shorter.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"mvdan.cc/gofumpt/format"
)

// width is the most bytes of a line, its end apart.
const width = 120

func main() {
	list := flag.Bool("l", false, "name the files that would change, and exit with 1 where there are any")
	flag.Parse()
	var work sync.WaitGroup
	var changed, failed atomic.Bool
	names := make(chan string)
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for name := range names {
				change, err := wrapNamed(name, *list)
				if err != nil {
					fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
					failed.Store(true)
				} else if change {
					changed.Store(true)
				}
			}
		})
	}
	for _, name := range flag.Args() {
		names <- name
	}
	close(names)
	work.Wait()
	switch {
	case failed.Load():
		os.Exit(2)
	case *list && changed.Load():
		os.Exit(1)
	}
}

// wrapNamed wraps a file where it stands, or only prints its name if that would change it.
func wrapNamed(name string, list bool) (change bool, err error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	out, err := wrapFile(src)
	if err != nil || bytes.Equal(src, out) {
		return false, err
	}
	if list {
		fmt.Println(name)
		return true, nil
	}
	return true, os.WriteFile(name, out, 0o666)
}

// wrapFile formats a file, then breaks every long line once and formats again, until nothing changes.
func wrapFile(src []byte) ([]byte, error) {
	for range 60 {
		formatted, err := format.Source(src, format.Options{LangVersion: "go1.26"})
		if err != nil {
			return nil, err
		}
		src = formatted
		if !hasLongLine(src) || isGenerated(src) {
			break
		}
		next, err := breakLines(src)
		if err != nil || bytes.Equal(next, src) {
			return src, err
		}
		src = next
	}
	return src, nil
}

func isGenerated(src []byte) bool {
	return bytes.Contains(src[:min(len(src), 400)], []byte("DO NOT EDIT"))
}

func hasLongLine(src []byte) bool {
	for line := range bytes.Lines(src) {
		if len(line) > width+1 {
			return true
		}
	}
	return false
}

// word is a token where it stands in the file.
type word struct {
	tok        token.Token
	start, end int
	line       int // of its start, from 0
	raw        bool
}

// file is what breaking needs to know: lines, their tokens, and what some brackets are.
type file struct {
	src     []byte
	lines   [][2]int // start and end of every line, without its newline
	words   [][]word // by the line on which they start
	inRaw   []bool   // lines that a raw string covers or reaches into
	literal map[int]int
	results map[int]bool // opening brackets of results
	edits   []edit
}

type edit struct {
	at, to int // what is replaced
	text   string
}

func breakLines(src []byte) ([]byte, error) {
	f, err := readFile(src)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(f.lines); i++ {
		if f.lines[i][1]-f.lines[i][0] <= width {
			continue
		}
		w := f.words[i]
		switch {
		case len(w) > 0 && w[0].tok == token.COMMENT:
			i = f.fillComment(i)
		case f.liftComment(i):
		case f.inRaw[i] && !f.breakBeforeRaw(i):
		case !f.inRaw[i]:
			f.breakCode(i)
		}
	}
	var out bytes.Buffer
	last := 0
	for _, e := range f.edits {
		if e.at < last {
			continue // a line in whose neighbour something was changed waits for the next round
		}
		out.Write(src[last:e.at])
		out.WriteString(e.text)
		last = e.to
	}
	out.Write(src[last:])
	return out.Bytes(), nil
}

func readFile(src []byte) (*file, error) {
	f := &file{src: src, literal: map[int]int{}, results: map[int]bool{}}
	at := 0
	for line := range bytes.Lines(src) {
		f.lines = append(f.lines, [2]int{at, at + len(bytes.TrimSuffix(line, []byte("\n")))})
		at += len(line)
	}
	f.words, f.inRaw = make([][]word, len(f.lines)), make([]bool, len(f.lines))
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			f.literal[offset(n.Lbrace)] = offset(n.Rbrace)
		case *ast.FuncType:
			if n.Results != nil && n.Results.Opening.IsValid() {
				f.results[offset(n.Results.Opening)] = true
			}
		}
		return true
	})
	f.scanWords()
	return f, nil
}

func (f *file) scanWords() {
	var s scanner.Scanner
	set := token.NewFileSet()
	tf := set.AddFile("", -1, len(f.src))
	s.Init(tf, f.src, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		if lit == "" || tok.IsOperator() {
			lit = tok.String()
		}
		start := tf.Offset(pos)
		w := word{tok: tok, start: start, end: start + len(lit), line: tf.Line(pos) - 1}
		w.raw = tok == token.STRING && strings.HasPrefix(lit, "`")
		f.words[w.line] = append(f.words[w.line], w)
		if w.raw {
			for l := w.line; l < len(f.lines) && f.lines[l][0] < w.end; l++ {
				f.inRaw[l] = true
			}
		}
	}
}

// fillComment fills the paragraph that a comment line is part of, and returns the paragraph's last line.
func (f *file) fillComment(i int) int {
	for l := i; l >= 0 && len(f.words[l]) == 1 && f.words[l][0].tok == token.COMMENT; l-- {
		if strings.Contains(strings.ToLower(f.text(l)), "// output:") {
			return i // what an example prints
		}
	}
	text := f.text(i)
	indent := text[:len(text)-len(strings.TrimLeft(text, "\t"))]
	first, last := i, i
	if !isProse(text) {
		if !strings.HasPrefix(strings.TrimSpace(text), "// ") {
			return i // a directive, or a comment of another form
		}
	} else {
		for first > 0 && f.joins(first-1, indent) {
			first--
		}
	}
	for last+1 < len(f.lines) && f.joins(last+1, indent) {
		last++
	}
	var words []string
	for l := first; l <= last; l++ {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(f.text(l)), "//"))...)
	}
	hang := ""
	if !isProse(text) {
		body := strings.TrimPrefix(strings.TrimSpace(text), "//")
		hang = body[1 : len(body)-len(strings.TrimLeft(body, " \t"))]
	}
	var out strings.Builder
	line := indent + "// " + hang + words[0]
	for _, w := range words[1:] {
		if len(line)+1+len(w) > width {
			out.WriteString(line + "\n")
			line = indent + "// " + hang + w
			continue
		}
		line += " " + w
	}
	out.WriteString(line)
	f.replace(f.lines[first][0], f.lines[last][1], out.String())
	return last
}

// isProse tells a line of a comment's paragraph from a list, a sample of code, a directive and an empty line.
func isProse(text string) bool {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), "// ")
	return ok && body != "" && !strings.ContainsAny(body[:1], " \t-*#|")
}

func (f *file) joins(line int, indent string) bool {
	w := f.words[line]
	text := f.text(line)
	return len(w) == 1 && w[0].tok == token.COMMENT && isProse(text) && strings.HasPrefix(text, indent+"//")
}

func (f *file) text(line int) string { return string(f.src[f.lines[line][0]:f.lines[line][1]]) }

func (f *file) replace(from, to int, text string) { f.edits = append(f.edits, edit{from, to, text}) }

// liftComment puts a comment behind code above the line.
func (f *file) liftComment(i int) bool {
	w := f.words[i]
	if len(w) < 2 || w[len(w)-1].tok != token.COMMENT || f.inRaw[i] {
		return false
	}
	c := w[len(w)-1]
	if f.src[c.start+1] != '/' {
		return false // it may go on behind this line
	}
	text := f.text(i)
	indent := text[:len(text)-len(strings.TrimLeft(text, "\t"))]
	f.replace(f.lines[i][0], f.lines[i][0], indent+string(f.src[c.start:c.end])+"\n")
	f.replace(w[len(w)-2].end, f.lines[i][1], "")
	return true
}

// place is where a line may end, and how little one likes it: lower is better.
type place struct {
	at   int
	cost float64
}

// breakBeforeRaw breaks a line with a raw string where other things on it make it long.
func (f *file) breakBeforeRaw(i int) bool {
	w := f.words[i]
	if len(w) == 0 || bytes.Contains(f.src[f.lines[i][0]:f.lines[i][1]], []byte(`:"`)) {
		return false // a continuation of the string, or a tag
	}
	f.breakCode(i)
	return true
}

func (f *file) breakCode(i int) {
	w := f.words[i]
	if len(w) == 0 {
		return
	}
	begin, end := f.lines[i][0], f.lines[i][1]
	assigned := -1
	depth := 0.0
	for k, x := range w {
		depth += step(x.tok)
		if depth == 0 && isAssignment(x.tok) {
			assigned = k
		}
	}
	var places []place
	depth = 0
	var open []word
	for k, x := range w {
		switch x.tok {
		case token.LPAREN, token.LBRACE, token.LBRACK:
			open = append(open, x)
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
		depth += step(x.tok)
		if x.end-begin > width || k == len(w)-1 || x.end-begin < 24 && depth > 0 {
			continue
		}
		cost, ok := dislike(x.tok, depth, k > assigned)
		if !ok {
			continue
		}
		if x.tok == token.COMMA && len(open) > 0 {
			if last := open[len(open)-1]; f.literal[last.start] > 0 && last.tok == token.LBRACE && f.literal[last.start] < end {
				if len(open) > 1 && open[len(open)-2].tok == token.LPAREN && f.endsLine(f.literal[last.start], end) {
					cost -= 1.1 // f(a, T{ … }) opens the literal only
				}
				places = append(places, place{-1 - last.start, cost})
				continue
			} else if f.results[last.start] || last.tok == token.LBRACK {
				cost += 0.8
			}
		}
		if end-x.end > width-8 && x.end-begin < width/2 {
			cost++ // what is left would have to be broken again
		}
		places = append(places, place{x.end, cost})
	}
	best := choose(places)
	if s, ok := f.longString(i); ok && (best == nil || best.cost >= 3 || best.cost >= 1 && s.end-s.start > width-30) {
		f.cutString(s, begin)
		return
	}
	switch {
	case best == nil:
	case best.at < 0:
		lbrace := -1 - best.at
		rbrace := f.literal[lbrace]
		f.replace(lbrace+1, lbrace+1, "\n")
		comma := ",\n"
		if before := bytes.TrimRight(f.src[:rbrace], " \t"); before[len(before)-1] == ',' {
			comma = "\n"
		}
		f.replace(rbrace, rbrace, comma)
	default:
		f.replace(best.at, best.at, "\n")
	}
}

// endsLine tells whether nothing but closing brackets and a comma stand between a bracket and the end of its line.
func (f *file) endsLine(rbrace, end int) bool {
	return len(bytes.Trim(f.src[rbrace:end], ")}, ")) == 0
}

func step(t token.Token) float64 {
	switch t {
	case token.LPAREN, token.LBRACE, token.LBRACK:
		return 1
	case token.RPAREN, token.RBRACE, token.RBRACK:
		return -1
	}
	return 0
}

func isAssignment(t token.Token) bool {
	return t == token.ASSIGN || t == token.DEFINE || t >= token.ADD_ASSIGN && t <= token.AND_NOT_ASSIGN
}

// dislike is what a break behind a token costs: by its depth in brackets first.
func dislike(t token.Token, depth float64, right bool) (float64, bool) {
	switch t {
	case token.COMMA:
		return depth, depth > 0 || right
	case token.LOR:
		return depth + 0.1, true
	case token.LAND:
		return depth + 0.2, true
	case token.ADD, token.SUB:
		return depth + 0.5, right
	case token.MUL, token.QUO:
		return depth + 3.5, right
	case token.LPAREN:
		return depth + 3, true
	case token.PERIOD:
		return depth + 6, true
	}
	return 0, false
}

// choose takes the cheapest place, of equal ones the last.
func choose(places []place) *place {
	var best *place
	for k := range places {
		if best == nil || places[k].cost <= best.cost {
			best = &places[k]
		}
	}
	return best
}

// longString is the string on a line that reaches beyond its end and has room before it.
func (f *file) longString(i int) (word, bool) {
	begin := f.lines[i][0]
	for _, x := range f.words[i] {
		if x.tok == token.STRING && !x.raw && x.start-begin < width-30 && x.end-begin > width-2 && f.src[x.end] != '[' {
			return x, true
		}
	}
	return word{}, false
}

// cutString ends a string at the last blank that leaves room for the sign that joins it with its rest.
func (f *file) cutString(s word, begin int) {
	limit := begin + width - 3
	for at := limit; at > s.start+20; at-- {
		if at < s.end-1 && (f.src[at-1] == ' ' || f.src[at-1] == 'n' && f.src[at-2] == '\\' && f.src[at-3] != '\\') {
			f.replace(at, at, "\" +\n\"")
			return
		}
	}
}
