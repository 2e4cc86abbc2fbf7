package yamldoc

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Decode fills what to points to from a value. Fields have the names of their
// yaml tags; a type with UnmarshalText reads any scalar by itself, so that text
// such as yes or 2:1 reaches it as written. Null leaves the zero value.
//
// It is strict: an unknown key, a key given twice, and a value of another kind
// than the field's are errors of type *Error, with line and path. Numbers are
// decimal, truth values true and false. Text is whatever stands there.
//
// Texts in the result share memory with the text that was parsed.
func Decode(v *Value, to any) error {
	if err := (structs{}).decode(v, reflect.ValueOf(to).Elem()); err != nil {
		return err
	}
	return nil
}

func (s structs) decode(v *Value, to reflect.Value) *Error {
	if v.Kind == Null {
		to.SetZero()
		return nil
	}
	if u, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return decodeText(v, u)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return s.decode(v, to.Elem())
	case reflect.Struct:
		return s.decodeStruct(v, to)
	case reflect.Map:
		return s.decodeMap(v, to)
	case reflect.Slice:
		return s.decodeList(v, to)
	}
	return decodeScalar(v, to)
}

func (v *Value) wrong(format string, args ...any) *Error {
	return &Error{Line: int(v.Line), Text: fmt.Sprintf(format, args...)}
}

// found says what a value is, for messages.
func (v *Value) found() string {
	switch {
	case v.Kind == Map:
		return "a map"
	case v.Kind == List:
		return "a list"
	case v.Quoted:
		return fmt.Sprintf("%.60q in quotes", v.Text)
	}
	return fmt.Sprintf("%.60q", v.Text)
}

func decodeText(v *Value, to encoding.TextUnmarshaler) *Error {
	if v.Kind != Scalar {
		return v.wrong("%s; expected one value", v.found())
	}
	if err := to.UnmarshalText([]byte(v.Text)); err != nil {
		return v.wrong("%v", err)
	}
	return nil
}

func (s structs) decodeStruct(v *Value, to reflect.Value) *Error {
	fields := s.fields(to.Type())
	if v.Kind != Map {
		return v.wrong("%s; expected a map with %s", v.found(), strings.Join(names(fields), ", "))
	}
	for i := range v.Items {
		e := &v.Items[i]
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == e.Key })
		if at < 0 {
			return e.unknown(names(fields)).in(step(e.Key))
		}
		// Every key so far is a field's, so there are few.
		for k := range i {
			if v.Items[k].Key == e.Key {
				return e.wrong("given twice; first on line %d", v.Items[k].Line).in(step(e.Key))
			}
		}
		if err := s.decode(e, to.FieldByIndex(fields[at].index)); err != nil {
			return err.in(e.Key)
		}
	}
	return nil
}

// unknown is the error about a key that no field has.
func (v *Value) unknown(known []string) *Error {
	text := "unknown key; "
	if near := nearest(v.Key, known); len(near) > 0 {
		text += fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
	}
	return v.wrong("%sknown: %s", text, strings.Join(known, ", "))
}

// step is a key as a part of a path, in quotes where it could be taken for more.
func step(key string) string {
	plain := strings.IndexFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
	if plain && key != "" && len(key) <= 60 {
		return key
	}
	return fmt.Sprintf("%.60q", key)
}

func (s structs) decodeMap(v *Value, to reflect.Value) *Error {
	if v.Kind != Map {
		return v.wrong("%s; expected a map", v.found())
	}
	t := to.Type()
	m := reflect.MakeMapWithSize(t, len(v.Items))
	for i := range v.Items {
		e := &v.Items[i]
		key := reflect.ValueOf(e.Key).Convert(t.Key())
		if m.MapIndex(key).IsValid() {
			return e.wrong("given twice; first on line %d", v.Get(e.Key).Line).in(step(e.Key))
		}
		elem := reflect.New(t.Elem()).Elem()
		if err := s.decode(e, elem); err != nil {
			return err.in(step(e.Key))
		}
		m.SetMapIndex(key, elem)
	}
	to.Set(m)
	return nil
}

func (s structs) decodeList(v *Value, to reflect.Value) *Error {
	if v.Kind != List {
		return v.wrong("%s; expected a list", v.found())
	}
	list := reflect.MakeSlice(to.Type(), len(v.Items), len(v.Items))
	for i := range v.Items {
		if err := s.decode(&v.Items[i], list.Index(i)); err != nil {
			return err.in(fmt.Sprintf("[%d]", i))
		}
	}
	to.Set(list)
	return nil
}

// decodeScalar reads what JSON has for numbers and truth values, so that no reader of YAML takes it for anything else:
// neither quoted nor hexadecimal nor infinite, nor with a leading zero, which is octal to some.
func decodeScalar(v *Value, to reflect.Value) *Error {
	want := ""
	switch to.Kind() {
	case reflect.String:
		if v.Kind == Scalar {
			to.SetString(v.Text)
			return nil
		}
		return v.wrong("%s; expected text", v.found())
	case reflect.Bool:
		want = "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number from 0"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	default:
		panic("yamldoc: cannot decode into a " + to.Type().String())
	}
	if v.Kind != Scalar || v.Quoted || json.Unmarshal([]byte(v.Text), to.Addr().Interface()) != nil {
		return v.wrong("%s; expected %s", v.found(), want)
	}
	return nil
}
