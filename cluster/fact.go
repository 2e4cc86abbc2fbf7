package cluster

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Origin says where a figure came from. The order is the order of trust: when
// two sources differ, the greater origin is kept.
type Origin uint8

// Origins, least trusted first. The zero value means nobody looked.
const (
	Unknown  Origin = iota
	Assumed         // a rule of thumb, said so
	Spec            // a data sheet or the catalogue
	Read            // a tool read it from the machine
	Measured        // traffic was sent and timed
)

var originNames = []string{"unknown", "assumed", "spec", "read", "measured"}

func (o Origin) String() string { return nameOf(originNames, int(o)) }

// MarshalText and UnmarshalText use the lower-case names.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a name.
func (o *Origin) UnmarshalText(b []byte) error {
	return parseName(o, originNames, b, "origin")
}

// Fact is a figure and where it came from. The zero Fact is unknown.
type Fact[T any] struct {
	Value  T
	Origin Origin
	Source string // a document, or a tool and place: "nvidia-smi topo -m"
}

// Known reports whether anybody gave the figure.
func (f Fact[T]) Known() bool { return f.Origin != Unknown }

// Or returns the value, or other when it is unknown.
func (f Fact[T]) Or(other T) T {
	if f.Known() {
		return f.Value
	}
	return other
}

// FromSpec, FromRead, FromMeasured and FromAssumed make facts.
func FromSpec[T any](v T, source string) Fact[T]     { return Fact[T]{v, Spec, source} }
func FromRead[T any](v T, source string) Fact[T]     { return Fact[T]{v, Read, source} }
func FromMeasured[T any](v T, source string) Fact[T] { return Fact[T]{v, Measured, source} }
func FromAssumed[T any](v T, source string) Fact[T]  { return Fact[T]{v, Assumed, source} }

type factJSON[T any] struct {
	Value  T      `json:"value"`
	Origin Origin `json:"from"`
	Source string `json:"source,omitempty"`
}

// MarshalJSON writes {"value":…,"from":"spec","source":"…"}, or null when unknown.
func (f Fact[T]) MarshalJSON() ([]byte, error) {
	if !f.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(factJSON[T](f))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Fact[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*f = Fact[T]{}
		return nil
	}
	return json.Unmarshal(data, (*factJSON[T])(f))
}

// MarshalText writes the value and its origin as one line of text:
// "450GB/s (spec: NVIDIA H100 data sheet)". An unknown fact has no text.
func (f Fact[T]) MarshalText() ([]byte, error) {
	if !f.Known() {
		return nil, nil
	}
	text, err := plain(f.Value)
	if err != nil {
		return nil, err
	}
	if f.Source == "" {
		return fmt.Appendf(nil, "%s (%s)", text, f.Origin), nil
	}
	return fmt.Appendf(nil, "%s (%s: %s)", text, f.Origin, f.Source), nil
}

// UnmarshalText reads what MarshalText writes. A value without an origin is what
// the file's author states: Spec, source "cluster file".
func (f *Fact[T]) UnmarshalText(b []byte) error {
	text := string(b)
	if text == "" {
		*f = Fact[T]{}
		return nil
	}
	f.Origin, f.Source = Spec, "cluster file"
	if v, origin, source, ok := cutOrigin(text); ok {
		text, f.Origin, f.Source = v, origin, source
	}
	return scan(text, &f.Value)
}

// cutOrigin splits "value (origin: source)" at the first bracket that opens an
// origin.
func cutOrigin(text string) (value string, o Origin, source string, ok bool) {
	body, ok := strings.CutSuffix(text, ")")
	for i := 0; ok && i < len(body); i++ {
		if body[i] != '(' {
			continue
		}
		for o = Assumed; o <= Measured; o++ {
			rest, is := strings.CutPrefix(body[i+1:], o.String())
			if source, ok := strings.CutPrefix(rest, ": "); is && (ok || rest == "") {
				return strings.TrimSuffix(body[:i], " "), o, source, true
			}
		}
	}
	return "", Unknown, "", false
}

// plain prints a fact's value so that scan reads it back.
func plain(v any) (string, error) {
	if m, ok := v.(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		return string(b), err
	}
	return fmt.Sprint(v), nil
}

func scan(text string, to any) error {
	switch p := to.(type) {
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	case *string:
		*p = text
		return nil
	}
	var err error
	switch p := to.(type) {
	case *int:
		*p, err = strconv.Atoi(text)
	case *float64:
		// A ratio may be written 2:1.
		*p, err = strconv.ParseFloat(strings.TrimSuffix(text, ":1"), 64)
		if err == nil && (*p < 0 || math.IsNaN(*p) || math.IsInf(*p, 0)) {
			err = strconv.ErrRange
		}
	default:
		return fmt.Errorf("cannot read a %T", to)
	}
	if err != nil {
		return fmt.Errorf("%q is not a usable number", text)
	}
	return nil
}

// IsZero lets encoding/json's omitzero leave unknown facts out.
func (f Fact[T]) IsZero() bool { return !f.Known() }

// Tri is an answer that may be missing.
type Tri uint8

// The three answers; the zero value means nobody looked.
const (
	Maybe Tri = iota
	No
	Yes
)

var triNames = []string{"unknown", "no", "yes"}

func (t Tri) String() string { return nameOf(triNames, int(t)) }

// Bool turns a looked-up truth into a Tri.
func Bool(b bool) Tri {
	if b {
		return Yes
	}
	return No
}

// MarshalText writes unknown, no or yes.
func (t Tri) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name.
func (t *Tri) UnmarshalText(b []byte) error {
	return parseName(t, triNames, b, "answer")
}

func nameOf(names []string, i int) string {
	if i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("?%d", i)
}

// parseName sets a value to the place of its name among all.
func parseName[T ~uint8](to *T, names []string, name []byte, what string) error {
	i := slices.Index(names, string(name))
	if i < 0 {
		return fmt.Errorf("%s %q; one of %q", what, name, names)
	}
	*to = T(i)
	return nil
}
