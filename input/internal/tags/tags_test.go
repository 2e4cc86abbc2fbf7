package tags

import (
	"fmt"
	"strings"
	"testing"
)

func TestAll(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "<a>\n<b x=\"1\"/>\n</a>", "1 open a; 2 empty b x=1; 3 close a"},
		{"single quotes", "<b x='a \"q\"'/>", "1 empty b x=a \"q\""},
		{"log around", "node0: size < 3 [0] <stdout>:<b x=\"1\">\r\nend", "1 open stdout; 1 open b x=1"},
		{"comment", "<!-- a > b\n <c> -- --><b>", "2 open b"},
		{"comment without end", "<!-- a <b>", ""},
		{"declaration", "<!DOCTYPE x [<!ENTITY a \"b\">]><b>", "1 decl DOCTYPE; 1 decl ENTITY; 1 open b"},
		{"instruction", "<?xml version=\"1.0\"?><b>", "1 open b"},
		{"value without end", "<b x=\"1\n<c>", "1 broken b; 2 open c"},
		{"tag without end", "<b x=\"1\" <c>", "1 broken b x=1; 1 open c"},
		{"cut off", "<b x=\"1\"", "1 broken b x=1"},
		{"attributes over lines", "<b\n x=\"1\"\n  y=\"\"/>", "1 empty b x=1 y="},
		{"bare key and number", "<b checked n=5 x=\"1\">", "1 open b x=1"},
		{"slash in a value", "<b x=\"16.0 GT/s\"/>", "1 empty b x=16.0 GT/s"},
		{"long value", "<b x=\"" + strings.Repeat("v", maxTag) + "\"><c>", "1 broken b; 1 open c"},
		{"entity stays text", "<b x=\"&amp;\"/>", "1 empty b x=&amp;"},
		{"nothing", "no tags here < 3", ""},
		{"zero bytes", "<b\x00 x=\"1\x00\"/>", "1 empty b x=1\x00"},
	} {
		if got := all(c.in); got != c.want {
			t.Errorf("%s: %q:\n got %s\nwant %s", c.name, c.in, got, c.want)
		}
	}
}

func all(in string) string {
	words := map[Kind]string{Open: "open", Empty: "empty", Close: "close", Decl: "decl", Broken: "broken"}
	var out []string
	for tok := range All(in) {
		w := fmt.Sprintf("%d %s %s", tok.Line, words[tok.Kind], tok.Name)
		for _, a := range tok.Attrs {
			w += fmt.Sprintf(" %s=%s", a.Key, a.Value)
		}
		out = append(out, w)
	}
	return strings.Join(out, "; ")
}

func FuzzAll(f *testing.F) {
	f.Add("<a x=\"1\"><!-- c --></a><b y='")
	f.Fuzz(func(t *testing.T, in string) {
		n := 0
		for tok := range All(in) {
			if n++; n > len(in) {
				t.Fatalf("%d tokens from %d bytes", n, len(in))
			}
			if tok.Line < 1 || tok.Line > 1+strings.Count(in, "\n") {
				t.Fatalf("line %d of %d", tok.Line, 1+strings.Count(in, "\n"))
			}
		}
	})
}
