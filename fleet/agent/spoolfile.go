package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"busbar.dev/fleet"
)

// line is one record of the spool's file. Exactly one of its kinds is set.
type line struct {
	Node   fleet.Name      `json:"node,omitzero"`    // of the first line: whose spool it is
	Format int             `json:"format,omitempty"` // of the first line: see spoolFormat
	ID     string          `json:"id,omitempty"`     // with News
	News   json.RawMessage `json:"news,omitempty"`   // something to say
	Stored string          `json:"stored,omitempty"` // the store has everything up to this identity
	Number uint64          `json:"number,omitempty"` // and this is its number there
}

// spoolFormat is how the file is written. Spools without a format were written in the same way.
const spoolFormat = 1

// frame is a line as it is written: the text with its length and its checksum in front.
func (l line) frame() ([]byte, error) {
	text, err := json.Marshal(l)
	return fmt.Appendf(nil, "%08x %08x %s\n", len(text), crc32.Checksum(text, castagnoli), text), err
}

// parseLine reads a line, with its end.
func parseLine(data []byte) (l line, err error) {
	const head = 8 + 1 + 8 + 1
	if len(data) <= head {
		return l, errors.New("a short line")
	}
	text := data[head : len(data)-1]
	if want := fmt.Sprintf("%08x %08x ", len(text), crc32.Checksum(text, castagnoli)); string(data[:head]) != want {
		return l, errors.New("a line with another length or checksum")
	}
	return l, json.Unmarshal(text, &l)
}

// load reads what an earlier process left.
func (s *spool) load() (err error) {
	for _, pattern := range []string{".spool-*", "journal*"} { // half a file, and files of versions that kept events twice
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), pattern))
		for _, name := range left {
			os.Remove(name)
		}
	}
	if s.f, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	if err := s.f.Truncate(s.size); err != nil {
		return err
	}
	if s.size == 0 {
		return s.write(line{Node: s.node, Format: spoolFormat}, true)
	}
	if err := s.compact(); err != nil && !errors.Is(err, syscall.ENOSPC) { // what is there can be said all the same
		return err
	}
	return nil
}

// mostDamage is how many places are passed over before the rest of a file is given up.
const mostDamage = 1000

// read takes what the file says. What a cut left of the last line ends it; damage in the middle is
// passed over up to the next line.
func (s *spool) read() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	r, at := bufio.NewReaderSize(io.NewSectionReader(s.f, 0, info.Size()), 1<<16), int64(0)
	for s.damaged < mostDamage {
		data, err := r.ReadBytes('\n')
		if err != nil { // it was not written to its end
			return nil
		}
		n := len(data)
		l, err := parseLine(data)
		if err != nil {
			s.damaged++
			at += int64(n)
			continue
		}
		if l.Node != s.node && (l.Node != "" || at == 0) {
			return fmt.Errorf("%s: it holds events of node %q, and this is %q; give each node its own folder", s.path, l.Node,
				s.node)
		}
		if l.Format > spoolFormat {
			return fmt.Errorf("%s has format %d; this version reads up to format %d; start the version that wrote it, or give "+
				"another folder with --data", s.path, l.Format, spoolFormat)
		}
		s.take(l, at, n)
		at += int64(n)
		s.size = at
	}
	return nil
}

// take does what a line says to what waits.
func (s *spool) take(l line, at int64, length int) {
	switch {
	case l.News != nil:
		s.waiting = append(s.waiting, entry{l.ID, at, length})
		s.live += int64(length)
	case l.Stored != "" || l.Number != 0:
		s.number = max(s.number, l.Number)
		for i, e := range s.waiting {
			if e.id == l.Stored {
				s.drop(i + 1)
				break
			}
		}
	}
}

func (s *spool) drop(n int) {
	for _, e := range s.waiting[:n] {
		s.live -= int64(e.length)
	}
	s.waiting = s.waiting[n:]
}

// write appends a line. When it fails the file is as it was.
func (s *spool) write(l line, sync bool) error {
	if owed := s.owed; owed != nil {
		s.owed = nil
		if err := s.write(*owed, false); err != nil {
			s.owed = owed
			return err
		}
	}
	data, err := l.frame()
	if err != nil {
		return err
	}
	if _, err = s.f.WriteAt(data, s.size); err == nil && sync {
		err = s.f.Sync()
	}
	if err != nil {
		_ = s.f.Truncate(s.size)
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.take(l, s.size, len(data))
	s.size += int64(len(data))
	return nil
}

// compact writes what waits into a new file, which takes the old one's place as a whole.
func (s *spool) compact() error {
	f, err := os.CreateTemp(filepath.Dir(s.path), ".spool-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when it was renamed
	var head []byte
	for _, l := range []line{{Node: s.node, Format: spoolFormat}, {Number: s.number}} {
		data, err := l.frame()
		if err != nil {
			return err
		}
		head = append(head, data...)
	}
	waiting := make([]entry, 0, len(s.waiting))
	w := bufio.NewWriterSize(f, 1<<16)
	_, err = w.Write(head)
	size := int64(len(head))
	for _, e := range s.waiting {
		if err == nil {
			_, err = io.Copy(w, io.NewSectionReader(s.f, e.at, int64(e.length)))
		}
		waiting = append(waiting, entry{e.id, size, e.length})
		size += int64(e.length)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.f.Close()
	s.f, s.size, s.waiting, s.owed, s.later = f, size, waiting, nil, 0
	return syncDir(filepath.Dir(s.path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
