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
	"Does this show it":     "Is this the cause",
	"speaks for ":           "points to",
	"stand below":           "are listed below",
}

// TestWords holds what people read to plain words: the strings of the packages that speak to them, and the page.
func TestWords(t *testing.T) {
	for _, dir := range []string{
		"query", "report", "cmd/busbar", "step", "plan", "predict", "doctor", "doctor/hang", "doctor/cause", "launch",
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
	pages, _ := filepath.Glob("../../web/page/*.js")
	for _, f := range pages {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for phrase, better := range banned {
			if strings.Contains(string(text), phrase) {
				t.Errorf("%s has %q: write %s", f, phrase, better)
			}
		}
	}
}

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
			checkSentences(t, at, reflect.StructTag(s).Get("help"))
		}
		return true
	})
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
