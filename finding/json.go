package finding

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// forms are the keys of a finding in the documents that have findings, in their order. Programs
// read these documents, and fleets have them stored: a key without a question mark is always there.
var forms = struct{ audit, doctor, pairs, fleet []string }{
	audit:  strings.Fields("id severity where text fix"),
	doctor: strings.Fields("id severity confidence title cause fix cost where? reference? evidence explained_by?"),
	pairs:  strings.Fields("kind severity ranks figure factor sigma text"),
	fleet: strings.Fields("id kind severity nodes where? figure? since always? factor confidence clearing? evidence " +
		"text fix cleared?"),
}

// form is that of the document that a finding belongs to, which shows in what it has.
func (f *Finding) form() []string {
	switch {
	case f.Ranks != nil:
		return forms.pairs
	case f.Kind != "":
		return forms.fleet
	case f.Title != "" || f.Evidence != nil:
		return forms.doctor
	}
	return forms.audit
}

// keys are the JSON names of the fields, in the order of the struct.
var keys = func() (list []string) {
	for f := range reflect.TypeFor[Finding]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list = append(list, name)
	}
	return list
}()

// MarshalJSON writes the keys of the finding's document first, then any other field that is set.
// A finding with ranks is one of a table of pairs, with a kind one of a fleet, with a title one of
// the doctor; others are of an audit.
func (f Finding) MarshalJSON() ([]byte, error) {
	o := object{}
	v := reflect.ValueOf(f)
	var done []string
	for _, key := range f.form() {
		key, optional := strings.CutSuffix(key, "?")
		done = append(done, key)
		o.add(key, v.Field(slices.Index(keys, key)), optional)
	}
	for i, key := range keys {
		if !slices.Contains(done, key) {
			o.add(key, v.Field(i), true)
		}
	}
	return o.end()
}

// MarshalJSON writes an object, or a string where the quote is of no file.
func (q Quote) MarshalJSON() ([]byte, error) {
	o := object{}
	if q.File == "" && q.Line == 0 {
		o.value(q.Text)
		return o.b.Bytes(), o.err
	}
	v := reflect.ValueOf(q)
	for i, key := range []string{"file", "line", "text"} {
		o.add(key, v.Field(i), false)
	}
	return o.end()
}

// UnmarshalJSON reads an object or a string.
func (q *Quote) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*q = Quote{}
		return json.Unmarshal(data, &q.Text)
	}
	type plain Quote // without this method
	return json.Unmarshal(data, (*plain)(q))
}

// object writes JSON key by key. It leaves <, > and & as they are: whoever encodes the document says
// whether they are escaped.
type object struct {
	b   bytes.Buffer
	err error
}

func (o *object) add(key string, v reflect.Value, optional bool) {
	if optional && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return
	}
	if o.b.Len() == 0 {
		o.b.WriteByte('{')
	} else {
		o.b.WriteByte(',')
	}
	o.value(key)
	o.b.WriteByte(':')
	o.value(v.Interface())
}

func (o *object) value(v any) {
	e := json.NewEncoder(&o.b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && o.err == nil {
		o.err = err
	}
}

func (o *object) end() ([]byte, error) {
	o.b.WriteByte('}')
	return o.b.Bytes(), o.err
}
