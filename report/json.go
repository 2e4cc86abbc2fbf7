package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"busbar.dev/internal/lazyre"
	"busbar.dev/query"
)

// JSON writes a document as --json prints it.
func JSON(w io.Writer, document any) error {
	var compact, indented bytes.Buffer
	if err := CompactJSON(&compact, document); err != nil {
		return err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", " "); err != nil {
		return err
	}
	_, err := w.Write(indented.Bytes())
	return err
}

// CompactJSON writes a document without indentation, for those that are long. It begins with its kind and its version.
func CompactJSON(w io.Writer, document any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return err
	}
	text := b.Bytes()
	if head := heading(document, text); head != "" {
		if _, err := fmt.Fprintf(w, "{%s", head); err != nil {
			return err
		}
		text = text[1:]
	}
	_, err := escaping{w}.Write(text)
	return err
}

// heading says the kind of a document by the name of its type, and the version of the form, where its text has no
// fields of its own for them.
func heading(document any, text []byte) (head string) {
	var own struct{ Kind, Version any }
	name := reflect.Indirect(reflect.ValueOf(document)).Type().Name()
	if name == "" || !bytes.HasPrefix(text, []byte(`{"`)) || json.Unmarshal(text, &own) != nil {
		return ""
	}
	if own.Kind == nil {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "Doc"), "Reply")
		head = fmt.Sprintf("\"kind\":%q,", strings.ToLower(wordEnd.ReplaceAllString(name, "$1${3}_$2$4")))
	}
	if own.Version == nil {
		head += fmt.Sprintf("\"version\":%d,", query.Version)
	}
	return head
}

// wordEnd is where a word of a name in Go ends: BenchGPU, GPUNode.
var wordEnd = lazyre.New(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)

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
