package finding

import (
	"bytes"
	"encoding/json"
)

// MarshalJSON writes an object, or a string where the quote is of no file. It leaves <, > and & as they are: whoever
// encodes the document says whether they are escaped.
func (q Quote) MarshalJSON() ([]byte, error) {
	type plain Quote // without this method
	var form any = plain(q)
	if q.File == "" && q.Line == 0 {
		form = q.Text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(form)
	return b.Bytes(), err
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
