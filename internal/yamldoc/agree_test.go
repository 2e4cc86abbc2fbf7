package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// agree compares a value with what the general library made of it.
func agree(v *Value, theirs any) error {
	bad := fmt.Errorf("line %d: %s; the library reads %T %v", v.Line, form(v), theirs, theirs)
	switch x := theirs.(type) {
	case nil:
		if v.Kind != Null {
			return bad
		}
	case map[string]any:
		if v.Kind != Map || len(v.Items) != len(x) {
			return bad
		}
		for i := range v.Items {
			// A key that is a number or nothing to the library is spelt differently there.
			if e, ok := x[v.Items[i].Key]; ok {
				if err := agree(&v.Items[i], e); err != nil {
					return err
				}
			} else if k := v.Items[i].Key; isPlain(k, true) && !looksElse(k) {
				return bad
			}
		}
	case []any:
		if v.Kind != List || len(v.Items) != len(x) {
			return bad
		}
		for i := range v.Items {
			if err := agree(&v.Items[i], x[i]); err != nil {
				return err
			}
		}
	case string:
		// The library mistakes a dash at the start of a second line.
		if v.Kind != Scalar || v.Text != x && !strings.Contains(v.Text, " -") {
			return bad
		}
	case bool:
		if v.Kind != Scalar || v.Quoted || !strings.EqualFold(v.Text, strconv.FormatBool(x)) {
			return bad
		}
	default:
		if v.Kind != Scalar || v.Quoted || !sameNumber(v, fmt.Sprint(x)) {
			return bad
		}
	}
	return nil
}

// sameNumber compares what both take for a number; the library takes more.
func sameNumber(v *Value, theirs string) bool {
	x, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || !json.Valid([]byte(v.Text)) {
		return true
	}
	y, err := strconv.ParseFloat(theirs, 64)
	return err == nil && math.Abs(x-y) <= 1e-12*math.Abs(x)
}

// odd is what the general library reads in its own way, or wrongly: {a:b} as a
// map, control characters, block scalars, escapes, empty lines, document marks,
// "- " without a value, keys that are numbers or nothing, {a,a: b} as one key,
// quotes over two lines.
var odd = regexp.MustCompile(
	`:[^ \n]|[\x00-\x09\x0b-\x1f\x7f]|[|>\\!]|\n *\n|\.\.\.|---|- *(\n|$)|[0-9] *:|(^|\n) *:|,|["'][^"'\n]*\n`)

// FuzzAgree compares Parse with the general library on texts that both read.
func FuzzAgree(f *testing.F) {
	for _, s := range []string{
		"a: 1\nb:\n- c\n- d: 'e'\n", `{"a":[1,{"b":null}]}`, "a: >-\n  b\n\n  c\n", "- - a\n  - {b: c}\n",
		"a: \"x\\\n  y\"\n",
		"a: |\n  x\n   y\nb: [c, d]\n", "a: b # c\n", "a:\n  b: {c: d, e: [f]}\n  g: true\n", "- a: b\n  c:\n  - d\n- 1.5\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 120 || !utf8.ValidString(s) || odd.MatchString(s) {
			return
		}
		docs, err := Parse(s)
		if err != nil || len(docs) != 1 {
			return
		}
		var theirs any
		if yaml.Unmarshal([]byte(s), &theirs) != nil {
			return
		}
		if err := agree(&docs[0], theirs); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}
