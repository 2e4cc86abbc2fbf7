package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// JSON writes a document as --json prints it.
func JSON(w io.Writer, document any) error {
	enc := json.NewEncoder(escaping{w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(document)
}

// escaping writes as \u what JSON allows as it is and a terminal would obey: C1 codes, DEL, and marks that turn the direction of
// writing.
type escaping struct{ w io.Writer }

func (e escaping) Write(p []byte) (int, error) {
	obeyed := func(r rune) bool { return r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) }
	out := p
	if bytes.ContainsFunc(p, obeyed) {
		out = make([]byte, 0, len(p)+64)
		for _, r := range string(p) {
			if obeyed(r) {
				out = fmt.Appendf(out, "\\u%04x", r)
			} else {
				out = utf8.AppendRune(out, r)
			}
		}
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
