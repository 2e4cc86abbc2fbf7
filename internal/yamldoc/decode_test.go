package yamldoc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answer reads text by itself, as the model's three-valued answers do.
type answer int

func (a answer) MarshalText() ([]byte, error) {
	if a == 0 {
		return []byte("no"), nil
	}
	return []byte("yes"), nil
}

func (a *answer) UnmarshalText(b []byte) error {
	switch string(b) {
	case "no":
		*a = 0
	case "yes":
		*a = 1
	default:
		return fmt.Errorf("answer %q; one of yes, no", b)
	}
	return nil
}

// absent is written unless it says that it is nothing.
type absent struct{ X int }

func (a absent) IsZero() bool { return a.X < 0 }

type word string

type end struct {
	Switch string `yaml:"switch,omitempty"`
	Port   int    `yaml:"port,omitempty"`
}

type sample struct {
	Name   string           `yaml:"name"`
	Count  int8             `yaml:"count,omitempty"`
	Index  *int             `yaml:"index,omitempty"`
	Ratio  float64          `yaml:"ratio,omitempty"`
	On     bool             `yaml:"on,omitempty"`
	Answer answer           `yaml:"answer,omitempty"`
	Words  []word           `yaml:"words,omitempty"`
	Ends   []end            `yaml:"ends,omitempty"`
	End    *end             `yaml:"end,omitempty"`
	Errors map[word]uint64  `yaml:"errors,omitempty"`
	Deep   map[string]*end  `yaml:"deep,omitempty"`
	Absent absent           `yaml:"absent,omitempty"`
	Lists  [][]string       `yaml:"lists,omitempty"`
	Nested []map[string]end `yaml:"nested,omitempty"`
	Hidden string           `yaml:"-"`
	Plain  string
}

func decode(text string) (sample, error) {
	docs, err := Parse(text)
	if err != nil {
		return sample{}, err
	}
	var s sample
	return s, Decode(&docs[0], &s)
}

func TestDecode(t *testing.T) {
	seven := 7
	got, err := decode(`
name: 007
count: -3
index: 7
ratio: 2.5e3
on: true
answer: yes
words: [true, 'null', 0x10, ~]
ends:
  - {switch: a, port: 1}
  -
  - switch: b
end: {port: 2}
errors: {A.x: 18446744073709551615}
deep: {k: {switch: c}, l: }
lists: [[a], []]
plain: "x: y"
`)
	want := sample{
		Name: "007", Count: -3, Index: &seven, Ratio: 2500, On: true, Answer: 1, Words: []word{"true", "null", "0x10", ""},
		Ends: []end{{"a", 1}, {}, {"b", 0}}, End: &end{Port: 2}, Errors: map[word]uint64{"A.x": 1<<64 - 1},
		Deep: map[string]*end{"k": {Switch: "c"}, "l": nil}, Lists: [][]string{{"a"}, {}}, Plain: "x: y",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"name: a\nends:\n  - swich: b\n", "line 3: ends[0].swich: unknown key; did you mean switch? known: switch, port"},
		{"nmae: a", "line 1: nmae: unknown key; did you mean name? known: name, "},
		{"End: a", "line 1: End: unknown key; did you mean end? "},
		{"bandwidth: a", "line 1: bandwidth: unknown key; known: name, "},
		{"hidden: a", "line 1: hidden: unknown key; "},
		{"\"a b\\n\": 1", `line 1: "a b\n": unknown key`},
		{"name: a\ncount: 1\nname: b", "line 3: name: given twice; first on line 1"},
		{"errors:\n  a: 1\n  a: 2", "line 3: errors.a: given twice; first on line 2"},
		{"count: 300", `line 1: count: "300"; expected a whole number`},
		{"count: '3'", `line 1: count: "3" in quotes; expected a whole number`},
		{"count: 0x3", `line 1: count: "0x3"; expected a whole number`},
		{"count: 010", `line 1: count: "010"; expected a whole number`},
		{"count: 1_0", `line 1: count: "1_0"; expected a whole number`},
		{"count: 1.0", `line 1: count: "1.0"; expected a whole number`},
		{"count:\n  a: b", "line 1: count: a map; expected a whole number"},
		{"ratio: .inf", `line 1: ratio: ".inf"; expected a number`},
		{"ratio: Inf", `line 1: ratio: "Inf"; expected a number`},
		{"ratio: nan", `line 1: ratio: "nan"; expected a number`},
		{"ratio: 0x1p3", `line 1: ratio: "0x1p3"; expected a number`},
		{"ratio: 1e999", `line 1: ratio: "1e999"; expected a number`},
		{"on: yes", `line 1: on: "yes"; expected true or false`},
		{"on: 'true'", `line 1: on: "true" in quotes; expected true or false`},
		{"answer: ture", `line 1: answer: answer "ture"; one of yes, no`},
		{"answer: [yes]", "line 1: answer: a list; expected one value"},
		{"errors: {a: -1}", `line 1: errors.a: "-1"; expected a whole number from 0`},
		{"errors: [a]", "line 1: errors: a list; expected a map"},
		{"words: a", `line 1: words: "a"; expected a list`},
		{"words:\n  - a\n  - b: c", "line 3: words[1]: a map; expected text"},
		{"lists:\n  - [a]\n  - - b\n    - [c]", "line 4: lists[1][1]: a list; expected text"},
		{"nested:\n  - x: {port: a}", `line 2: nested[0].x.port: "a"; expected a whole number`},
		{"end: a", `line 1: end: "a"; expected a map with switch, port`},
		{"- a", "line 1: a list; expected a map with name, "},
	} {
		_, err := decode(tt.text)
		var at *Error
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n  %v\nwant\n  %s", tt.text, err, tt.want)
		}
	}
}

// An error about a long key is short, and its length alone says that no known one is near.
func TestLongKey(t *testing.T) {
	key := strings.Repeat("k", 1<<20)
	if _, err := decode(key + ": 1\n"); err == nil || len(err.Error()) > 400 {
		t.Errorf("%.500v", err)
	}
	if near := nearest(key, []string{"nodes", strings.Repeat("k", 9)}); near != nil {
		t.Errorf("%d letters may have meant %q", len(key), near)
	}
}

func TestPlace(t *testing.T) {
	docs, err := Parse("nodes:\n  - hosts: a\n    type: b\ntypes:\n  a b:\n    gpus: 1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path []any
		want string
	}{
		{nil, "1  true"},
		{[]any{"nodes", 0, "type"}, "3 nodes[0].type true"},
		{[]any{"nodes", 0, "count"}, "2 nodes[0].count false"},
		{[]any{"nodes", 1, "count"}, "1 nodes[1].count false"},
		{[]any{"types", "a b", "gpus"}, `6 types."a b".gpus true`},
	} {
		line, name, ok := docs[0].Place(tt.path...)
		if got := fmt.Sprint(line, " ", name, " ", ok); got != tt.want {
			t.Errorf("%v: %s; want %s", tt.path, got, tt.want)
		}
	}
}
