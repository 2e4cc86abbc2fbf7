// Package yamldoc reads YAML and JSON that other people's tools and hands wrote
// into a tree of values with line numbers, within bounds; it fills structs from
// such a tree and writes them as YAML.
//
// It is no general YAML library because the files it is for are large and not
// trusted: the node list of a big Kubernetes cluster is a hundred megabytes, of
// which a few labels matter. Here memory follows the values that are kept,
// uninteresting keys are skipped without being stored, every value knows its
// line, and nesting, the number of values and the size are limited.
//
// It reads what such files hold: block and flow collections, plain, quoted and
// block scalars, comments, several documents, tags (ignored). It refuses, by
// line, what would let a small file stand for a large one or what it does not
// know: anchors and aliases, explicit keys ("? "), tabs as indentation. It
// never reads such a text as something else.
package yamldoc

import (
	"errors"
	"fmt"
	"io"
)

// Limits of a text.
const (
	MaxBytes  = 512 << 20 // size of the text
	maxValues = 4_000_000 // values kept; fewer of a short text, see valuesIn
	maxDepth  = 100       // collections within collections
)

// Kind is what a value is.
type Kind uint8

// Kinds of value.
const (
	Null Kind = iota
	Scalar
	Map
	List
)

// Value is a scalar, or a list, or a map in the order of the text.
type Value struct {
	Kind   Kind
	Quoted bool   // a scalar that was written in quotes or as a block
	Line   int32  // from 1
	Key    string // of an entry of a map
	Text   string // of a scalar
	Items  []Value
}

// Get follows keys through maps. It returns nil when there is no such entry,
// and of a nil value.
func (v *Value) Get(keys ...string) *Value {
	for _, k := range keys {
		if v == nil || v.Kind != Map {
			return nil
		}
		at := -1
		for i := range v.Items {
			if v.Items[i].Key == k {
				at = i
				break
			}
		}
		if at < 0 {
			return nil
		}
		v = &v.Items[at]
	}
	return v
}

// Str is the text of a scalar, "" of anything else.
func (v *Value) Str() string {
	if v == nil || v.Kind != Scalar {
		return ""
	}
	return v.Text
}

// List is the items of a list, none of anything else.
func (v *Value) List() []Value {
	if v == nil || v.Kind != List {
		return nil
	}
	return v.Items
}

// Texts is a scalar, or the scalars of a list, without empty ones.
func (v *Value) Texts() []string {
	var out []string
	if s := v.Str(); s != "" {
		out = append(out, s)
	}
	for i := range v.List() {
		if s := v.Items[i].Str(); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Map is the entries of a map, none of anything else.
func (v *Value) Map() []Value {
	if v == nil || v.Kind != Map {
		return nil
	}
	return v.Items
}

// True reports whether a scalar says true.
func (v *Value) True() bool {
	switch v.Str() {
	case "true", "True", "TRUE", "yes", "on":
		return true
	}
	return false
}

// LineNum is the line of a value, 0 of none.
func (v *Value) LineNum() int {
	if v == nil {
		return 0
	}
	return int(v.Line)
}

// Place looks for the value at a path of keys (string) and positions (int). It
// gives the line of that value or else of the last one on the way, the path as
// errors have it, and whether the value is there.
func (v *Value) Place(path ...any) (line int, name string, ok bool) {
	line = v.LineNum()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.Get(p)
			if name != "" {
				name += "."
			}
			name += step(p)
		case int:
			if items := v.List(); p >= 0 && p < len(items) {
				v = &items[p]
			} else {
				v = nil
			}
			name += fmt.Sprintf("[%d]", p)
		}
		if v != nil {
			line = v.LineNum()
		}
	}
	return line, name, v != nil
}

// Error is a place in a text and what is wrong there.
type Error struct {
	Line int
	Path string // of a value that Decode could not use: nodes[0].type
	Text string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Text)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Path, e.Text)
}

// Read parses what a source of a name holds, as Parse does. Errors say the name and the line.
func Read(name string, r io.Reader, skip ...string) ([]Value, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	docs, err := Parse(string(data), skip...)
	if err != nil {
		return nil, In(name, err)
	}
	return docs, nil
}

// In is an error of parsing a file, with the file's name and, where it is known, the line in front.
func In(name string, err error) error {
	var at *Error
	if errors.As(err, &at) {
		return fmt.Errorf("%s:%d: %s", name, at.Line, at.Text)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// in puts the error's place inside an entry or an item.
func (e *Error) in(step string) *Error {
	if e.Path != "" && e.Path[0] != '[' {
		step += "."
	}
	e.Path = step + e.Path
	return e
}
