package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// banned are phrases that a reader has to guess the meaning of, with what to write instead.
var banned = map[string]string{
	"what NCCL takes":       "NCCL's choice",
	"NCCL takes ":           "NCCL chooses",
	" a step, %d":           "global batch",
	"d at once":             "concurrent, or micro-batch",
	". Without it":          "(default: …)",
	"; without it":          "(default: …)",
	" without it.":          "(default: …)",
	"None: ":                "(default: …)",
	"sums of products":      "tensor-parallel all-reduces",
	"among shard ranks":     "ZeRO/FSDP all-gathers and reduce-scatters",
	"tokens a second":       "tokens/s",
	"in the middle":         "median",
	"othing is wrong":       "No problems found",
	"othing that will hurt": "No problems found",
	"by hand":               "manually",
	"of one's own":          "custom",
	"more than nothing":     "more than 0",
	" %%":                   "no space before the percent sign",
	"nobody described":      "without a description",
	"news of":               "event of",
	"calls itself":          "uses the name",
	"it were ":              "it would be",
	"where somebody took":   "if they were stolen",
	"By hand":               "(default: …)",
	"eld against":           "compared with",
	"Does this show it":     "Is this the cause",
	"speaks for ":           "points to",
	"stand below":           "are listed below",
	"stands beside":         "is compared with",
	"stand beside":          "are compared with",
	" is what fails":        "fails",
	"way around":            "workaround",
	"inside of the":         "inside the",
	"outside of the":        "outside the",
	"as great as":           "equal to, or at least",
	"that are over":         "resolved",
	"a call', n: true":      "per call",
	"rests on":              "is based on",
	"with everybody":        "with all others",
	"costs everybody":       "costs all others",
	"without a word":        "silently",
}

// TestWords holds what people read to plain words: the strings of the packages that speak to them, and the page.
func TestWords(t *testing.T) {
	for _, dir := range []string{
		"query", "report", "cmd/busbar", "step", "plan", "predict", "doctor", "doctor/hang", "doctor/cause", "launch",
		"engine", "engine/ranks", "engine/bench", "engine/bench/gpu", "engine/health", "lab", "web",
		"fleet", "fleet/agent", "fleet/bus", "fleet/client", "fleet/health", "fleet/hub", "fleet/server",
	} {
		files, _ := filepath.Glob("../../" + dir + "/*.go")
		if len(files) == 0 {
			t.Fatalf("%s: no files", dir)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				checkStrings(t, f)
			}
		}
	}
	pages := []string{"../../README.md"}
	for _, pattern := range []string{
		"doctor/cause/causes/*.yaml", "web/page/*.js", "web/page/*.html", "docs/fleet*.md",
		"docs/page.md", "docs/install.md", "docs/lab.md", "docs/security.md", "docs/steps.md", "docs/tutorials/*.md",
		"packaging/*/*",
	} {
		list, _ := filepath.Glob("../../" + pattern)
		if len(list) == 0 {
			t.Fatalf("%s: no files", pattern)
		}
		pages = append(pages, list...)
	}
	for _, f := range pages {
		if info, err := os.Stat(f); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for phrase, better := range banned {
			if strings.Contains(string(text), phrase) {
				t.Errorf("%s has %q: write %s", f, phrase, better)
			}
		}
		if at := spacedPercent.FindString(string(text)); at != "" {
			t.Errorf("%s has %q: no space before the percent sign", f, at)
		}
	}
}

// TestDocumentWords holds every document to the plainest of these, and to a few more.
func TestDocumentWords(t *testing.T) {
	for _, pattern := range []string{"docs/*.md", "docs/manual/*.md", "docs/format/*.md"} {
		files, _ := filepath.Glob("../../" + pattern)
		if len(files) == 0 {
			t.Fatalf("%s: no files", pattern)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, phrase := range []string{
				"eld against", "y hand", "what NCCL takes", "sums of products", "tokens a second", "othing is wrong",
				"of one's own", "what is usual", "nobody described", "somebody else", "the middle",
			} {
				if strings.Contains(string(text), phrase) {
					t.Errorf("%s has %q: see the list of banned phrases for better words", f, phrase)
				}
			}
			if at := spacedPercent.FindString(string(text)); at != "" {
				t.Errorf("%s has %q: no space before the percent sign", f, at)
			}
		}
	}
}

// spacedPercent is a percent sign behind a space, and not the operator of JavaScript.
var spacedPercent = regexp.MustCompile("[0-9}] %([^=a-z0-9( ]| [a-z]{3,}[ ,;.])")

func checkStrings(t *testing.T, file string) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return true
		}
		s, err := strconv.Unquote(l.Value)
		if err != nil {
			t.Fatal(err)
		}
		at := set.Position(l.Pos())
		for phrase, better := range banned {
			if strings.Contains(s, phrase) {
				t.Errorf("%s has %q: write %s", at, phrase, better)
			}
		}
		if l.Value[0] == '`' {
			tag := reflect.StructTag(s)
			checkSentences(t, at, tag.Get("help"))
			checkDefault(t, at, tag)
		}
		return true
	})
}

// checkDefault holds the help of a flag to its default, in parentheses.
func checkDefault(t *testing.T, at token.Position, tag reflect.StructTag) {
	help, value := tag.Get("help"), tag.Get("default")
	_, command := tag.Lookup("cmd")
	_, hidden := tag.Lookup("hidden")
	if help != "" && value != "" && value != "-1" && !command && !hidden && !strings.Contains(help, "default") {
		t.Errorf("%s: the help %.40q… does not say the default: (default %s)", at, help, value)
	}
}

var sentenceEnd = regexp.MustCompile(`[.;:] |[()]`)

// checkSentences holds a flag's help to sentences of 30 words; lists of values in parentheses count by themselves.
func checkSentences(t *testing.T, at token.Position, help string) {
	for _, s := range sentenceEnd.Split(help, -1) {
		if n := len(strings.Fields(s)); n > 30 {
			t.Errorf("%s: a sentence of %d words in the help: %.60q…", at, n, s)
		}
	}
}
