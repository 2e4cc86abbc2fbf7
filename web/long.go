package web

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"busbar.dev/report"
)

// longAnswer is from where on an answer is made without indentation and one at a time: making JSON takes several times
// its length.
const longAnswer = 4 << 20

// making is held by who makes a long answer.
var making sync.Mutex

// writeJSON writes a document as --json prints it. One that would have more than so many bytes is refused before it is
// made, by what is in it.
func writeJSON(w io.Writer, document any, most int) error {
	left := most
	weigh(reflect.ValueOf(document), &left, 0)
	switch {
	case left < 0:
		return fmt.Errorf("the answer has more than %d MiB; ask for less", most>>20)
	case most-left < longAnswer:
		return report.JSON(w, document)
	}
	making.Lock()
	defer making.Unlock()
	return report.CompactJSON(w, document)
}

// weigh takes about as many bytes off left as a value has in JSON.
func weigh(v reflect.Value, left *int, depth int) {
	if *left < 0 || depth > 64 {
		return
	}
	*left -= 2
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			weigh(v.Elem(), left, depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			*left -= v.Len()
			return
		}
		for i := 0; i < v.Len() && *left >= 0; i++ {
			weigh(v.Index(i), left, depth+1)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next() && *left >= 0; {
			weigh(it.Key(), left, depth+1)
			weigh(it.Value(), left, depth+1)
		}
	case reflect.Struct:
		weighFields(v, left, depth)
	default:
		*left -= 6
	}
}

func weighFields(v reflect.Value, left *int, depth int) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous || strings.Contains(options, "omit") && empty(v.Field(i)) {
			continue
		}
		if !f.Anonymous {
			*left -= max(len(name), 4) + 4
		}
		weigh(v.Field(i), left, depth+1)
	}
}

// empty is what omitempty and omitzero leave out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// encoded is a value as the page's answers are encoded.
func encoded(v any) ([]byte, error) {
	out := &bounded{most: maxAnswer}
	left := longAnswer
	if weigh(reflect.ValueOf(v), &left, 0); left >= 0 {
		data, err := json.MarshalIndent(v, "", " ")
		return append(data, '\n'), err
	}
	err := writeJSON(out, v, maxAnswer)
	return out.Bytes(), err
}
