package lines

import "bytes"

// Find reports whether ok holds for a line of data that contains token, bare of
// labels and terminal codes. Each line is looked at once, and one longer than
// MaxPiece not at all, so that the cost is that of one pass over the text.
func Find(data []byte, token string, ok func(line string) bool) bool {
	want := []byte(token)
	for {
		at := bytes.Index(data, want)
		if at < 0 {
			return false
		}
		first := bytes.LastIndexByte(data[:at], '\n') + 1
		last := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			last = at + n
		}
		if last-first <= MaxPiece && ok(Bare(clean(bytes.TrimRight(data[first:last], "\r")))) {
			return true
		}
		data = data[last:]
	}
}
