package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Bounds of a file.
const (
	maxLine    = 1 << 20
	maxRecords = 1 << 18
)

// Match reports whether a text begins like a file of records.
func Match(data []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimSpace(data[:min(len(data), maxLine)]), []byte("\n"))
	return bytes.HasPrefix(first, []byte("{")) && bytes.Contains(first, []byte(`"busbar_result"`))
}

// Write writes sweeps, one row a line. A row that no reader would take is refused, and
// nothing is written.
func Write(w io.Writer, list ...*Sweep) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range Sweeps(list).Rows() {
		rec := r.record()
		if err := rec.check(); err != nil {
			return fmt.Errorf("a %s of %d bytes: %w", r.Op, int64(r.Size), err)
		}
		if err := enc.Encode(rec); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Read reads what Write wrote. Rows that follow each other and differ in nothing but sizes and
// times are one sweep. Empty lines are passed over; anything else that is not a row is an error
// that names the line.
func Read(name string, r io.Reader) (Sweeps, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var list Sweeps
	line, rows := 0, 0
	for sc.Scan() {
		line++
		b := bytes.TrimSpace(sc.Bytes())
		if len(b) == 0 {
			continue
		}
		if rows++; rows > maxRecords {
			return nil, fmt.Errorf("%s:%d: more than %d records; cut the file", name, line, maxRecords)
		}
		rec, err := readRecord(b)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		s := rec.sweep(line)
		s.File, s.OpFrom, s.LayoutFrom = name, "its record", "its record"
		list.Append(s)
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes; expected one record a line, as busbar bench -o writes "+
			"them", name, line+1, maxLine)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// readRecord reads one line. A field that this release does not know is refused, for it may
// change what the others mean; the message says who wrote it.
func readRecord(b []byte) (*record, error) {
	if b[0] != '{' {
		return nil, errors.New("expected one JSON object a line, as busbar bench -o writes them")
	}
	var rec record
	b = unit.InSeconds(b)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rec); err != nil {
		return nil, inWords(b, err)
	}
	if dec.InputOffset() != int64(len(b)) {
		return nil, errors.New("something follows the object; expected one JSON object a line")
	}
	if err := rec.check(); err != nil {
		return nil, err
	}
	return &rec, nil
}

// inWords says what is wrong with a line in the words of its fields.
func inWords(b []byte, err error) error {
	var syntax *json.SyntaxError
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		var by struct {
			Tool   string `json:"tool"`
			Format int    `json:"busbar_result"`
		}
		json.Unmarshal(b, &by)
		return fmt.Errorf("the field %.60s is not known to this release; the line is of format %d, written by %.60q", field,
			by.Format, by.Tool)
	}
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("column %d: %w", syntax.Offset, syntax)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the object has no end; expected one JSON object a line")
	}
	return words.JSON(err)
}

// MarshalJSON writes the rows as a list, each as a file has it.
func (l Sweeps) MarshalJSON() ([]byte, error) {
	rows := l.Rows()
	list := make([]*record, len(rows))
	for i, r := range rows {
		list[i] = r.record()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // who wants that asks the encoder of the whole
	err := enc.Encode(list)
	return b.Bytes(), err
}

// UnmarshalJSON reads a list of rows. Fields of later releases are passed over. A row that no
// file would keep is read, and the Problem of its sweep says what is wrong with it.
func (l *Sweeps) UnmarshalJSON(data []byte) error {
	var list []*record
	if err := json.Unmarshal(unit.InSeconds(data), &list); err != nil {
		return err
	}
	*l = nil
	for _, r := range list {
		if r == nil {
			r = &record{}
		}
		s := r.sweep(0)
		if err := r.check(); err != nil {
			s.Problem = err.Error()
		}
		l.Append(s)
	}
	return nil
}
