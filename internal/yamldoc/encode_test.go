package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func encode(t interface{ Fatal(...any) }, v any) string {
	var b bytes.Buffer
	if err := Encode(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEncode(t *testing.T) {
	zero := 0
	got := encode(t, sample{
		Name: "x", Index: &zero, Ratio: 0.25, Answer: 1,
		Words: []word{"a", "", "- b", "no", "4xHDR", "0000:07:00.0", "0000:1b:00.0", "a\nb\x00é\u0085"},
		Ends:  []end{{"leaf0", 3}, {"leaf[0-3]", 4}, {}, {strings.Repeat("long", 30), 1}}, End: &end{"leaf[0-3]", 0},
		Absent: absent{-1},
		Errors: map[word]uint64{"b": 2, "a": 1, "null": 3}, Hidden: "h", Lists: [][]string{{"a", "b"}, {}, {"c"}},
		Nested: []map[string]end{{"k": {"l", 1}, "j": {}}},
	})
	want := `name: x
index: 0
ratio: 0.25
answer: "yes"
words:
  - a
  - ""
  - "- b"
  - "no"
  - 4xHDR
  - "0000:07:00.0"
  - 0000:1b:00.0
  - "a\nb\x00é\u0085"
ends:
  - {switch: leaf0, port: 3}
  - switch: leaf[0-3]
    port: 4
  - {}
  - switch: longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong
    port: 1
end: {switch: "leaf[0-3]"}
errors: {a: 1, b: 2, "null": 3}
lists:
  - - a
    - b
  - []
  - - c
nested:
  - j: {}
    k: {switch: l, port: 1}
plain: ""
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := encode(t, Ordered{{"b", 1}, {"a", nil}, {"c", []int{}}}); got != "b: 1\na: null\nc: []\n" {
		t.Error(got)
	}
	for _, v := range []any{"", 7, []string{"x"}, map[string]int{}, nil} {
		text := encode(t, v)
		var back any
		if err := yaml.Unmarshal([]byte(text), &back); err != nil {
			t.Errorf("%#v: %q: %v", v, text, err)
		}
	}
	if err := Encode(&bytes.Buffer{}, sample{Ratio: math.NaN()}); err == nil ||
		err.Error() != "ratio: NaN cannot be written" {
		t.Error(err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestEncodeReportsWriteErrors(t *testing.T) {
	if err := Encode(full{}, sample{}); err == nil {
		t.Error("no error")
	}
}

// hard is text that some reader of YAML takes for something else.
var hard = []string{
	"", " ", "a ", "\t", "~", "null", "NULL", "true", "False", "yes", "No", "on", "OFF", "y", "N", "=", "<<", "-", "--",
	"---", "...", ".", "..", "-a", "- a", "? a", ":", ":a", "a:", "a: b", "a:b", "a #b", "a#b", "#a", "*a", "&a", "!a",
	"|", ">", "'", "\"", "''", "%", "@", "`", "{", "}", "[", "]", ",", "a,b", "a[1-2]", "{a}",
	"1", "+1", "-1", "01", "0o7", "0x1F", "0b1", "1_000", "1.", ".5", "1e3", "1.5e+3", ".inf", "-.INF", "+.Inf", ".nan",
	"Infinity", "0x", "0xg", "12:30", "12:30:45", "0000:07:00.0", "0000:1b:00.0", "1:2:3.5", "2024-01-01",
	"2024-1-1 10:00:00", "2001-12-14t21:59:43.10-05:00", "2:1", "1,000", "12e03", "0.", "1e", "4xHDR", "8 x H100",
	"a\nb", "a\n", "\na", "a\r\nb", "\x00", "\x1b[0m", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufeffa", "é",
	"😀", "a\u200bb", "\ufffe", "\\", "\\n", "a\\", "a\"b", "a'b", "450GB/s (spec: NVIDIA H100 data sheet)", "a: b, c",
	"C:\\x", "http://x/y?z#w", "$HOME", "(a)", "a - b", "a ? b", "<a>", "a=b", "null ", "nullx",
}

func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hard), rapid.StringMatching(`[ -~]{0,8}`),
		rapid.StringMatching(`[0-9.:_eExobXT+-]{1,10}`), rapid.StringN(0, 6, -1))
}

func samples() *rapid.Generator[sample] {
	return rapid.Custom(func(t *rapid.T) sample {
		text := texts()
		ends := rapid.Custom(func(t *rapid.T) end {
			return end{text.Draw(t, "switch"), rapid.IntRange(0, 2).Draw(t, "port")}
		})
		words := rapid.Map(text, func(s string) word { return word(s) })
		return sample{
			Name: text.Draw(t, "name"), Count: rapid.Int8().Draw(t, "count"),
			Index: rapid.Ptr(rapid.Int(), true).Draw(t, "index"),
			Ratio: rapid.Float64().Draw(t, "ratio"), On: rapid.Bool().Draw(t, "on"),
			Answer: answer(rapid.IntRange(0, 1).Draw(t, "answer")),
			Words:  rapid.SliceOfN(words, 0, 3).Draw(t, "words"), Ends: rapid.SliceOfN(ends, 0, 3).Draw(t, "ends"),
			End: rapid.Ptr(ends, true).Draw(t, "end"), Errors: rapid.MapOfN(words, rapid.Uint64(), 0, 3).Draw(t, "errors"),
			Deep:   rapid.MapOfN(text, rapid.Ptr(ends, true), 0, 3).Draw(t, "deep"),
			Lists:  rapid.SliceOfN(rapid.SliceOfN(text, 0, 3), 0, 3).Draw(t, "lists"),
			Nested: rapid.SliceOfN(rapid.MapOfN(text, ends, 0, 2), 0, 2).Draw(t, "nested"),
			Plain:  text.Draw(t, "plain"),
		}
	})
}

// empty makes no difference between no list and an empty one.
var empty = cmp.Transformer("empty", func(s []word) []string {
	var out []string
	for _, w := range s {
		out = append(out, string(w))
	}
	return out
})

// TestRoundTrip writes random structs and reads them with Decode and, as plain
// values, with the general library.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := samples().Draw(t, "sample")
		text := encode(t, want)
		docs, err := Parse(text)
		if err != nil || len(docs) != 1 {
			t.Fatalf("%s\n%d documents, %v", text, len(docs), err)
		}
		var got sample
		if err := Decode(&docs[0], &got); err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if again := encode(t, got); again != text {
			t.Fatalf("written again:\n%s", cmp.Diff(text, again))
		}
		if diff := cmp.Diff(want.Words, got.Words, empty); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
		var theirs any
		if err := yaml.Unmarshal([]byte(text), &theirs); err != nil {
			t.Fatalf("%s\nthe library: %v", text, err)
		}
		if err := agree(&docs[0], theirs); err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
	})
}

// TestHardTexts holds every hard text, as a value and as a key, in blocks and on
// one line, to what Decode, the general library and Python read.
func TestHardTexts(t *testing.T) {
	want := map[string]any{}
	var list []any
	m := map[string]any{}
	for _, s := range hard {
		list = append(list, s)
		m[s] = s
	}
	want["list"], want["map"] = list, m
	for _, s := range hard {
		want["flow "+s] = map[string]any{s: s, "z": s}
	}
	text := encode(t, want)
	docs, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plainOf(&docs[0])); diff != "" {
		t.Error(diff)
	}
	var theirs any
	if err := yaml.Unmarshal([]byte(text), &theirs); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(want, theirs); diff != "" {
		t.Errorf("the library:\n%s", diff)
	}
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import yaml").Run() != nil {
		t.Skip("no python3 with yaml")
	}
	cmd := exec.Command(python, "-c", "import yaml, json, sys; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)")
	cmd.Stdin = strings.NewReader(text)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("Python:\n%s", diff)
	}
}
