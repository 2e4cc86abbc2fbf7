package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// unmarshalLoose reads an object whose numbers may be written as words ("ZeRO-3", "16", true) and words as numbers, as
// tables that people transcribe have them. What no number is in counts as not stated.
func unmarshalLoose(line []byte, to any) error {
	if err := json.Unmarshal(line, to); err == nil {
		return nil
	}
	var all map[string]any
	if err := json.Unmarshal(line, &all); err != nil {
		return err
	}
	coerce(all, reflect.TypeOf(to).Elem())
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(to).Elem()
	v.SetZero()
	return json.Unmarshal(data, to)
}

// coerce makes the values of an object such as the fields of a struct take.
func coerce(values map[string]any, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		v, ok := values[key]
		if !ok || key == "-" || v == nil {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch kind.Kind() {
		case reflect.Struct:
			if inner, ok := v.(map[string]any); ok {
				coerce(inner, kind)
			} else {
				delete(values, key)
			}
		case reflect.String:
			values[key] = wordOf(v)
		case reflect.Bool:
			if _, ok := v.(bool); !ok {
				values[key] = truthOf(v)
			}
		case reflect.Int, reflect.Int64, reflect.Float64:
			x, ok := numberOf(v)
			switch {
			case !ok:
				delete(values, key)
			case kind.Kind() == reflect.Float64:
				values[key] = x
			default:
				values[key] = int64(x)
			}
		}
	}
}

var numberIn = lazyre.New(`\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`) // the dash of ZeRO-1 is no sign

// numberOf is the first number of a value; a truth is 1 or 0.
func numberOf(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, x > -1e18 && x < 1e18
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case string:
		n, err := strconv.ParseFloat(numberIn.FindString(strings.ReplaceAll(x, ",", "")), 64)
		return n, err == nil && n > -1e18 && n < 1e18
	}
	return 0, false
}

func wordOf(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	case []any:
		var list []string
		for _, e := range x {
			list = append(list, wordOf(e))
		}
		return strings.Join(list, ", ")
	}
	return ""
}

func truthOf(v any) bool {
	switch x := v.(type) {
	case float64:
		return x != 0
	case string:
		switch strings.ToLower(x) {
		case "", "no", "false", "none", "off", "0":
			return false
		}
		return true
	}
	return false
}
