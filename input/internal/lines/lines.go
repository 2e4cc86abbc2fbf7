// Package lines cuts tool output into clean lines.
//
// What people hand in is seldom the tool's output alone: it is a log in which a
// launcher wrote a rank before each line, a terminal left colour codes and an
// editor carriage returns. The readers of tool output see none of that. Memory
// does not grow with the input; a line longer than MaxLine is cut and marked.
package lines

import (
	"bufio"
	"bytes"
	"io"
)

// MaxLine is the longest line that is kept whole.
const MaxLine = 64 << 10

// Reader returns the lines of a text one after another.
type Reader struct {
	in   *bufio.Reader
	line []byte
	num  int
	cut  bool
	err  error
}

// NewReader reads lines from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, MaxLine)}
}

// Next moves to the next line and reports whether there is one.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	b, err := r.in.ReadSlice('\n')
	r.cut = err == bufio.ErrBufferFull
	r.line = Clean(bytes.TrimSuffix(b, []byte{'\n'}))
	if r.cut {
		// The kept part points into the buffer that the rest will overwrite.
		r.line = bytes.Clone(r.line)
	}
	for err == bufio.ErrBufferFull {
		_, err = r.in.ReadSlice('\n')
	}
	if err != nil {
		r.err = err
		if len(b) == 0 {
			return false
		}
	}
	r.num++
	return true
}

// Line is the current line without its end and what Clean removes. It is valid
// until Next is called.
func (r *Reader) Line() []byte { return r.line }

// Num is the number of the current line, from 1.
func (r *Reader) Num() int { return r.num }

// Cut reports whether the current line was longer than MaxLine.
func (r *Reader) Cut() bool { return r.cut }

// Err is the error that ended the text, nil at its proper end.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Find reports whether ok holds for a cleaned line of data that contains token.
// Each line is looked at once, so its cost is that of one pass.
func Find(data []byte, token string, ok func(line []byte) bool) bool {
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
		if last-first <= MaxLine && ok(Clean(data[first:last])) {
			return true
		}
		data = data[last:]
	}
}
