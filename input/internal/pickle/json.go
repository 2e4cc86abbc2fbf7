package pickle

import (
	"bytes"
	"encoding/json"
	"math"
)

// ReadJSON reads a JSON text into the same values. Texts that are the same stand at the same place.
func (r *Reader) ReadJSON(data []byte) (Value, error) {
	r.reset(nil, len(data))
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	texts := map[string]Value{}
	for {
		t, err := in.Token()
		if err != nil {
			return Value{}, err
		}
		switch t := t.(type) {
		case json.Delim:
			err = r.delimiter(t)
		case string:
			v, ok := texts[t]
			if !ok {
				v = Value{n: uint64(len(r.data)), len: uint32(len(t)), Kind: String}
				r.data = append(r.data, t...)
				texts[t] = v
			}
			err = r.push(v)
		case json.Number:
			err = r.push(number(t))
		case bool:
			v := Value{Kind: Bool}
			if t {
				v.n = 1
			}
			err = r.push(v)
		default:
			err = r.push(Value{})
		}
		if err != nil {
			return Value{}, err
		}
		if len(r.marks) == 0 {
			return r.stack[0], alone(data[in.InputOffset():])
		}
	}
}

// delimiter begins a list or a dictionary, or fills it with what was pushed since.
func (r *Reader) delimiter(d json.Delim) error {
	if d == '[' || d == '{' {
		r.marks = append(r.marks, len(r.stack))
		return r.push(Value{Kind: mark})
	}
	items, err := r.sinceMark()
	if err != nil {
		return err
	}
	kind := Dict
	if d == ']' {
		kind = List
	}
	v := Value{n: uint64(len(r.content)), Kind: kind}
	r.content = append(r.content, nil)
	r.fillContainer(v, items)
	return r.push(v)
}

func number(t json.Number) Value {
	if n, err := t.Int64(); err == nil {
		return Value{n: uint64(n), Kind: Int}
	}
	x, _ := t.Float64()
	return Value{n: math.Float64bits(x), Kind: Float}
}
