package report

import (
	"encoding/json"
	"io"
)

// JSON writes a document as --json prints it.
func JSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(document)
}
