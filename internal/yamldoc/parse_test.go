package yamldoc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// form prints a value compactly: {k: v, …}, [a, …], text in quotes, ~ for null.
func form(v *Value) string {
	var b strings.Builder
	switch v.Kind {
	case Null:
		return "~"
	case Scalar:
		return fmt.Sprintf("%q", v.Text)
	case Map:
		b.WriteByte('{')
		for i := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", v.Items[i].Key, form(&v.Items[i]))
		}
		b.WriteByte('}')
	case List:
		b.WriteByte('[')
		for i := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(form(&v.Items[i]))
		}
		b.WriteByte(']')
	}
	return b.String()
}

func forms(docs []Value) string {
	var s []string
	for i := range docs {
		s = append(s, form(&docs[i]))
	}
	return strings.Join(s, " --- ")
}

func TestParse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"comment only", "# a\n\n  # b\n", ""},
		{"map", "a: 1\nb: two words # c\nc:\nd: ''\n", `{a: "1", b: "two words", c: ~, d: ""}`},
		{"nested", "a:\n  b:\n    c: d\n  e: f\ng: h", `{a: {b: {c: "d"}, e: "f"}, g: "h"}`},
		{"list", "- a\n- b\n-\n- - c\n  - d\n", `["a", "b", ~, ["c", "d"]]`},
		{"list of maps", "- a: 1\n  b: 2\n-   c: 3\n    d: 4\n", `[{a: "1", b: "2"}, {c: "3", d: "4"}]`},
		{"list at the key's column", "a:\n- x\n- y: 1\n  z: 2\nb: c\n", `{a: ["x", {y: "1", z: "2"}], b: "c"}`},
		{"list below the key", "a:\n    - x\n    - y\nb: c", `{a: ["x", "y"], b: "c"}`},
		{"list in list on the next line", "-\n  - a\n-\n  b: c\n", `[["a"], {b: "c"}]`},
		{"documents", "---\na: 1\n---\n- b\n...\n---\n---\nc\n", `{a: "1"} --- ["b"] --- ~ --- "c"`},
		{"directive", "%YAML 1.2\n---\na: b\n", `{a: "b"}`},
		{"scalar on the marker's line", "--- text\n--- [1]\n", `"text" --- ["1"]`},
		{"windows", "a: b\r\nc:\r\n- d\r\n", `{a: "b", c: ["d"]}`},
		{
			"quotes", `a: "x: # \"y\" \u00e9\n"` + "\n'b''s': 'it''s'\n\"c\" : d\n",
			`{a: "x: # \"y\" é\n", b's: "it's", c: "d"}`,
		},
		{
			"quotes over lines", "a: \"one\n  two\n\n  three \\\n  four\"\nb: 'x\n  y'\n",
			`{a: "one two\nthree four", b: "x y"}`,
		},
		{"plain over lines", "a: one\n  two\n\n  three\nb: c\n", `{a: "one two\nthree", b: "c"}`},
		{
			"plain with marks", "a: http://x:80/y#z?q=[1]&b\nb: a,b[1-2]\nc: -1\nd: a - b\n",
			`{a: "http://x:80/y#z?q=[1]&b", b: "a,b[1-2]", c: "-1", d: "a - b"}`,
		},
		{"value on the next line", "a:\n  text\n  more\nb:\n  'q'\n", `{a: "text more", b: "q"}`},
		{
			"literal", "a: |\n  x: y\n    z\n\n  w\nb: |-\n  t\nc: |+\n  u\n\nd: v\n",
			`{a: "x: y\n  z\n\nw\n", b: "t", c: "u\n\n", d: "v"}`,
		},
		{
			"folded", "a: >\n  one\n  two\n\n  three\n    four\n  five\nb: >-\n  x\n",
			`{a: "one two\nthree\n  four\nfive\n", b: "x"}`,
		},
		{"literal in a list", "- |\n  a: b\n  c\n- d\n", `["a: b\nc\n", "d"]`},
		{"literal with an indicator", "a: |2\n    x\n  y\nb: c\n", `{a: "  x\ny\n", b: "c"}`},
		{"literal at the top", "--- |\nx\n y\n", `"x\n y\n"`},
		{"literal ending in spaces", "|\n x\n  ", `"x\n "`},
		{"escaped space before a line break", "\"\\ \n a\"", `"  a"`},
		{"other spaces", "- a\n  \u00a0\n", `["a \u00a0"]`},
		{"empty literal", "a: |\nb: c\n", `{a: "", b: "c"}`},
		{
			"flow", "a: [x, 'y', {b: c, d}, [], [e: f]]\nb: {}\nc: {g: [1, 2,], h: }\n",
			`{a: ["x", "y", {b: "c", d: ~}, [], [{e: "f"}]], b: {}, c: {g: ["1", "2"], h: ~}}`,
		},
		{"flow over lines", "a: [\n  x, # c\n  y\n]\nb: c\n", `{a: ["x", "y"], b: "c"}`},
		{"json", `{"a":[1,2.5,true,null,"x\/\u00e9\ud83d\ude00"],"b":{"c":"d"}}`, `{a: ["1", "2.5", "true", ~, "x/é😀"], b: {c: "d"}}`},
		{"json objects in a row", "{\"a\":1}\n{\"a\":2}\n\n{\n}\n", `{a: "1"} --- {a: "2"} --- {}`},
		{"tags", "a: !!str 1\nb: !x\n  c: d\n", `{a: "1", b: {c: "d"}}`},
		{"tags on their own lines", "!x\n!y\na: !z\n  b\nc:\n  !w\nd: e\n--- !x\nf\n", `{a: "b", c: ~, d: "e"} --- "f"`},
		{"null", "a: null\nb: ~\nc: 'null'\n", `{a: ~, b: ~, c: "null"}`},
		{
			"skip", "a: 1\nskip:\n  b: [1, 2]\n  c: |\n    x\nd: {skip: [1], e: 2}\n", `{a: "1", skip: ~, d: {skip: ~, e: "2"}}`,
		},
		{"byte order mark", "\ufeffa: b", `{a: "b"}`},
		{"comment between", "a:\n  # c\n  b: 1\n# d\n  c: 2\n", `{a: {b: "1", c: "2"}}`},
	}
	for _, tt := range tests {
		docs, err := Parse(tt.in, "skip")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := forms(docs); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestLines(t *testing.T) {
	docs, err := Parse("a: 1\nb:\n  - c: 2\n\n  - d: [3,\n     {e: 4}]\n---\nf: 5\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		v    *Value
		want int
	}{
		{docs[0].Get("a"), 1},
		{docs[0].Get("b"), 2},
		{&docs[0].Get("b").Items[1], 5},
		{docs[0].Get("b").Items[1].Get("d").Items[1].Get("e"), 6},
		{docs[1].Get("f"), 8},
		{docs[1].Get("no"), 0},
	} {
		if got := tt.v.LineNum(); got != tt.want {
			t.Errorf("line %d; want %d", got, tt.want)
		}
	}
}

// laughs is the billion-laughs bomb: nine anchors, each nine times the one
// before it.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return b.String()
}

func TestRefuses(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"bomb", laughs(), "line 1: \"&a0 [lol"},
		{"alias", "a: *x\n", "line 1: \"*x\" is an anchor or an alias"},
		{"anchor before a key", "a: 1\n&b c: d\n", "line 2: \"&b c: d\" is an anchor"},
		{"merge key", "<<: *x\n", "anchor or an alias"},
		{"deep flow", strings.Repeat("[", 1_000_000), "nested more than 100 deep"},
		{"deep maps", strings.Repeat("{a: ", 1_000_000), "nested more than 100 deep"},
		{"deep dashes", strings.Repeat("- ", 1_000_000), "nested more than 100 deep"},
		{"deep block", deep(1000), "nested more than 100 deep"},
		{"many values", "[" + strings.Repeat("a,", 600_000) + "]", "more than 210000 values"},
		{"tab", "a:\n\tb: c\n", "line 2: a tab in the indentation"},
		{"tab and carriage return", "\t\ra: b\n", "line 1: a tab in the indentation"},
		{"JSON that is cut off", "\t\r{", "line 1: "},
		{"explicit key in flow", "{?}", "explicit key"},
		{"less than the empty line above", "|\n  \n x", "line 3: indented by less"},
		{"two of one kind", "|++\n x", "behind | or >"},
		{"explicit key", "? a\n: b\n", "explicit key"},
		{"second colon", "a: b: c\n", "line 1: \"b: c\": a second"},
		{
			"dots in place of values", "a:\n  ...\n\n  b:\n    c: 1\n",
			"line 4: \"b:\": a second \": \" in one value, which begins as \"...\" on line 2",
		},
		{"bad indentation", "a: 1\n  b: 2\n", "line 2: \"b: 2\": a second"},
		{"less indentation", "a:\n    b: 1\n  c: 2\n", "line 3:"},
		{"list and map", "- a\nb: c\n", "line 2: \"b: c\" does not belong"},
		{"map and list", "a: b\n- c\n", "line 2: \"- c\" among the entries of a map"},
		{"open list", "a: [1, 2\nb: c\n", "line 2:"},
		{"open quote", "a: \"x\nb: c\n", "line 1: \" is never closed"},
		{"bad escape", `a: "\q"`, "\\q is no escape"},
		{"text behind a quote", "a: \"x\" y\n", "behind a value"},
		{"dash as a value", "a: - b\n", "cannot start a value"},
		{"reserved", "a: @b\n", "cannot start a value"},
		{"dash in flow", "{a: - b}", "cannot start a value"},
		{"reserved in flow", "{#\n}", "cannot start a value"},
		{"plain over lines in flow", "[a\n b]", "goes on from the line above"},
	}
	for _, tt := range tests {
		docs, err := Parse(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.60s, error %v; want %s", tt.name, forms(docs), err, tt.want)
		}
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// plainOf turns a value into what encoding/json would give, numbers and truth
// values as text.
func plainOf(v *Value) any {
	switch v.Kind {
	case Map:
		m := map[string]any{}
		for i := range v.Items {
			m[v.Items[i].Key] = plainOf(&v.Items[i])
		}
		return m
	case List:
		l := []any{}
		for i := range v.Items {
			l = append(l, plainOf(&v.Items[i]))
		}
		return l
	case Null:
		return nil
	}
	return v.Text
}

func tree(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "null", "true", "1", "- a", "a: b", "x #y", "#z", "a\nb\n", "\n", " a ", "'", "\"", "*a", "&b", "|", "{",
			"a,b[1-2]", "é\t", "?", "-", "---", "...", "~", "a:", ":a", "%x", "@x", "!x", "\\",
		}),
		rapid.StringMatching(`[ -~]{0,12}`),
	)
	str := rapid.Map(text, func(s string) any { return s })
	if depth == 0 {
		return str
	}
	key := rapid.OneOf(rapid.StringMatching(`[a-z./]{1,6}`), text)
	return rapid.OneOf(str,
		rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(key, tree(depth-1), 0, 3), func(m map[string]any) any { return m }))
}

// What encoding/json and the general YAML library write, Parse reads back.
func TestReadsWhatOthersWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := tree(4).Draw(t, "tree")
		compact, _ := json.Marshal(want)
		pretty, _ := json.MarshalIndent(want, "", "  ")
		for _, text := range []string{string(compact), string(pretty)} {
			docs, err := Parse(text)
			if err != nil || len(docs) != 1 {
				t.Fatalf("%s\n%d documents, %v", text, len(docs), err)
			}
			if got, _ := json.Marshal(plainOf(&docs[0])); string(got) != string(compact) {
				t.Fatalf("%s\nread as %s", text, got)
			}
		}
	})
}

// Where the general YAML library reads a text made of plain words, lists and
// maps, Parse reads the same.
func TestAgreesWithLibrary(t *testing.T) {
	word := rapid.StringMatching(`[a-z][a-z0-9./-]{0,8}`)
	var gen func(depth int) *rapid.Generator[any]
	gen = func(depth int) *rapid.Generator[any] {
		str := rapid.Map(rapid.OneOf(word, rapid.StringMatching(`[a-z][ -~]{0,10}[a-z]`)), func(s string) any { return s })
		if depth == 0 {
			return str
		}
		return rapid.OneOf(str,
			rapid.Map(rapid.SliceOfN(gen(depth-1), 1, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(word, gen(depth-1), 1, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		want := gen(4).Draw(t, "tree")
		for _, opt := range []yaml.EncodeOption{
			yaml.IndentSequence(true), yaml.IndentSequence(false), yaml.UseSingleQuote(true),
		} {
			text, err := yaml.MarshalWithOptions(want, opt)
			if err != nil {
				t.Skip(err)
			}
			var theirs any
			if err := yaml.Unmarshal(text, &theirs); err != nil {
				continue
			}
			docs, err := Parse(string(text))
			if err != nil || len(docs) != 1 {
				t.Fatalf("%s\n%d documents, %v", text, len(docs), err)
			}
			a, _ := json.Marshal(plainOf(&docs[0]))
			b, _ := json.Marshal(theirs)
			if string(a) != string(b) {
				t.Fatalf("%s\nread as %s\nthe library reads %s", text, a, b)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1\nb:\n- c\n- d: 'e'\n", `{"a":[1,{"b":null}]}`, "--- |\n x\n", "a: >-\n  b\n\n  c\n", "- - a\n  - {b: c}\n",
		"a: \"x\\\n  y\"\n", laughs(), "\t\r{}", "\r\t \r[]", "\t\ra: b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		docs, err := Parse(s)
		// JSON as a whole is a collection; a bare scalar may break YAML's rules of
		// indentation.
		if !json.Valid([]byte(s)) || len(s) > 1<<16 || !strings.ContainsAny(strings.TrimLeft(s, " \t\r\n")[:1], "[{") {
			return
		}
		var want any
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if d.Decode(&want) != nil || err != nil && strings.Contains(err.Error(), "nested more") {
			return
		}
		if err != nil || len(docs) != 1 {
			t.Fatalf("valid JSON %q: %d documents, %v", s, len(docs), err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var s strings.Builder
	s.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for i := range 10000 {
		fmt.Fprintf(&s, "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n%d\n    labels:\n      a/b: \"x\"\n      "+
			"c/d: y%d\n  status:\n    capacity:\n      cpu: \"96\"\n      nvidia.com/gpu: \"8\"\n", i, i)
	}
	b.SetBytes(int64(s.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(s.String()); err != nil {
			b.Fatal(err)
		}
	}
}
