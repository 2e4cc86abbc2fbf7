package yamldoc

import (
	"encoding"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Ordered is a map that is written in its own order.
type Ordered []Pair

// Pair is an entry of an Ordered map.
type Pair struct {
	Key   string
	Value any
}

// Encode writes a value as YAML that Parse and Decode read back, and other
// readers of YAML 1.1 and 1.2 likewise. The same value always gives the same
// text. omitempty leaves out what is zero, empty, or says so itself by a method
// IsZero; a type with MarshalText is written as that text.
func Encode(w io.Writer, v any) error {
	value, err := (structs{}).encode(reflect.ValueOf(v))
	if err != nil {
		return err
	}
	return write(w, &value)
}

// encode turns a Go value into a tree to write. Quoted marks text that must not
// be read as anything else.
func (s structs) encode(v reflect.Value) (Value, error) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return Value{}, nil
	}
	switch x := methods(v).(type) {
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		return Value{Kind: Scalar, Quoted: true, Text: string(text)}, err
	case Ordered:
		return s.encodeOrdered(x)
	case *Ordered:
		return s.encodeOrdered(*x)
	}
	switch v.Kind() {
	case reflect.Struct:
		return s.encodeStruct(v)
	case reflect.Map:
		return s.encodeMap(v)
	case reflect.Slice, reflect.Array:
		list := Value{Kind: List, Items: make([]Value, v.Len())}
		for i := range list.Items {
			var err error
			if list.Items[i], err = s.encode(v.Index(i)); err != nil {
				return Value{}, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return list, nil
	}
	return encodeScalar(v)
}

// methods is a value as what may have methods, by its address where it has one:
// copying it costs memory. Types without a name have none.
func methods(v reflect.Value) any {
	switch {
	case v.Type().PkgPath() == "":
		return nil
	case v.CanAddr():
		return v.Addr().Interface()
	}
	return v.Interface()
}

func (s structs) encodeStruct(v reflect.Value) (Value, error) {
	fields := s.fields(v.Type())
	m := Value{Kind: Map, Items: make([]Value, 0, len(fields))}
	for _, f := range fields {
		fv := v.FieldByIndex(f.index)
		if f.omitEmpty && isEmpty(fv) {
			continue
		}
		e, err := s.encode(fv)
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", f.name, err)
		}
		e.Key = f.name
		m.Items = append(m.Items, e)
	}
	return m, nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		if z, ok := methods(v).(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
	}
	return v.IsZero()
}

func (s structs) encodeMap(v reflect.Value) (Value, error) {
	entries := make(map[string]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		entries[it.Key().String()] = it.Value().Interface()
	}
	var o Ordered
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		o = append(o, Pair{k, entries[k]})
	}
	return s.encodeOrdered(o)
}

func (s structs) encodeOrdered(o Ordered) (Value, error) {
	m := Value{Kind: Map, Items: make([]Value, len(o))}
	for i, p := range o {
		e, err := s.encode(reflect.ValueOf(p.Value))
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", step(p.Key), err)
		}
		e.Key = p.Key
		m.Items[i] = e
	}
	return m, nil
}

func encodeScalar(v reflect.Value) (Value, error) {
	s := Value{Kind: Scalar}
	switch v.Kind() {
	case reflect.String:
		s.Text, s.Quoted = v.String(), true
	case reflect.Bool:
		s.Text = strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.Text = strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.Text = strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return s, fmt.Errorf("%v cannot be written", f)
		}
		s.Text = float(f, v.Type().Bits())
	default:
		panic("yamldoc: cannot encode a " + v.Type().String())
	}
	return s, nil
}

// float writes a number in the shortest form that YAML 1.1 takes for one too: an
// exponent needs a point before it.
func float(f float64, bits int) string {
	if a := math.Abs(f); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, bits)
	}
	s := strconv.FormatFloat(f, 'e', -1, bits)
	if !strings.Contains(s, ".") {
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}
