package unit

import (
	"bytes"
	"encoding/json"
	"strings"
)

// InSeconds is a document of an earlier release in the form of this one: what its fields NAME_us hold in microseconds,
// fields NAME_s hold in seconds. Anything else is as it was.
func InSeconds(document []byte) []byte {
	if !bytes.Contains(document, []byte(`_us":`)) {
		return document
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return document // its reader says what is wrong
	}
	out, err := json.Marshal(inSeconds(v, false))
	if err != nil {
		return document
	}
	return append(out, document[d.InputOffset():]...)
}

// inSeconds is a value with its times in seconds, all of whose numbers may be microseconds.
func inSeconds(v any, micros bool) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); micros && err == nil {
			return round9(f * 1e-6)
		}
	case []any:
		for i := range v {
			v[i] = inSeconds(v[i], micros)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			short, old := strings.CutSuffix(name, "_us")
			if old {
				name = short + "_s"
			}
			out[name] = inSeconds(x, micros || old)
		}
		return out
	}
	return v
}
