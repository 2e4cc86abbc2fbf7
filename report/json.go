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

// CompactJSON writes a document without indentation, for those that are long.
func CompactJSON(w io.Writer, document any) error {
	enc := json.NewEncoder(escaping{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}

// escaping writes as \u what JSON allows as it is and a terminal would obey: C1 codes, DEL, and marks that turn the
// direction of writing.
type escaping struct{ w io.Writer }

func (e escaping) Write(p []byte) (int, error) {
	obeyed := func(r rune) bool { return r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) }
	for rest := p; len(rest) > 0; {
		at := bytes.IndexFunc(rest, obeyed)
		if at < 0 {
			at = len(rest)
		}
		if _, err := e.w.Write(rest[:at]); err != nil {
			return 0, err
		}
		if rest = rest[at:]; len(rest) > 0 {
			r, n := utf8.DecodeRune(rest)
			if _, err := fmt.Fprintf(e.w, "\\u%04x", r); err != nil {
				return 0, err
			}
			rest = rest[n:]
		}
	}
	return len(p), nil
}
