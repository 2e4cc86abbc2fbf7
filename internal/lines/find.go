package lines

import (
	"bytes"
	"slices"
)

// Has reports whether data holds each of the words.
func Has(data []byte, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(data, []byte(w)) })
}

// HasAny reports whether data holds one of the words.
func HasAny(data []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(data, []byte(w)) })
}

// Find reports whether ok holds for a line of data that contains token, bare of
// labels and terminal codes. Lines end where a Reader's do, at carriage returns too.
// Each is looked at once, and one longer than MaxPiece not at all, so that the cost
// is that of one pass over the text.
func Find(data []byte, token string, ok func(line string) bool) bool {
	want := []byte(token)
	for {
		at := bytes.Index(data, want)
		if at < 0 {
			return false
		}
		first := bytes.LastIndexAny(data[:at], "\r\n") + 1
		last := len(data)
		if n := bytes.IndexAny(data[at:], "\r\n"); n >= 0 {
			last = at + n
		}
		if last-first <= MaxPiece && ok(Bare(StripANSI(string(data[first:last])))) {
			return true
		}
		data = data[last:]
	}
}
