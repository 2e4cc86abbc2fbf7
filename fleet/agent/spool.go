package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/outfile"
)

// maxSpool is how much may wait for a server that is not there, on disk and in memory.
const maxSpool = 64 << 20

const (
	spoolName   = "spool"
	compactFrom = 1 << 20 // bytes of what is stored already that are worth a new file
	around      = 128     // of a line around its events, at most
)

// spoolFormat is how the file is written. Spools without a format were written in the same way.
const spoolFormat = 1

// spool is what a node has to say, on disk. It is a fleet bus.Backlog.
//
// The file is a line for each thing, with its length and its checksum in front. A line that was
// not written to its end, as a power cut leaves it, ends the file.
type spool struct {
	path   string
	most   int64
	unlock func()
	more   chan struct{} // something was added

	mu      sync.Mutex
	size    int64 // of the file
	live    int64 // bytes of what waits
	waiting []entry
	origin  string // of what is added by this process
	count   uint64
	number  uint64 // of the last that is stored
	node    fleet.Name
	dropped int
	damaged int // lines of the file that could not be read
}

// entry is something that waits.
type entry struct {
	id    string
	event []byte
	size  int64 // in the file
}

// line is one record of the file. Exactly one of its kinds is set.
type line struct {
	Node   fleet.Name      `json:"node,omitzero"`    // of the first line: whose spool it is
	Format int             `json:"format,omitempty"` // of the first line: see spoolFormat
	ID     string          `json:"id,omitempty"`     // with News
	News   json.RawMessage `json:"news,omitempty"`   // something to say
	Stored string          `json:"stored,omitempty"` // the store has everything up to this identity
	Number uint64          `json:"number,omitempty"` // and this is its number there
}

// openSpool opens the spool of a node in a folder, which belongs to this process until unlock.
func openSpool(dir string, node fleet.Name) (*spool, error) {
	if err := osdep.MakePrivate(dir); err != nil {
		return nil, err
	}
	unlock, err := bus.Lock(filepath.Join(dir, "lock"), false)
	if err != nil {
		return nil, err
	}
	s := &spool{
		path: filepath.Join(dir, spoolName), most: maxSpool, unlock: unlock, more: make(chan struct{}, 1),
		origin: rand.Text(), node: node,
	}
	if err := s.load(); err != nil {
		unlock()
		return nil, err
	}
	return s, nil
}

// load reads what an earlier process left. What a cut left of the last line ends it; damage in the middle is
// passed over up to the next line.
func (s *spool) load() error {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".new-*")) // half a file
	for _, name := range left {
		os.Remove(name)
	}
	data, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for text := range bytes.Lines(data) {
		if !bytes.HasSuffix(text, []byte("\n")) {
			break
		}
		l, err := parseLine(text)
		switch {
		case err != nil:
			s.damaged++
		case l.Node != s.node && (l.Node != "" || s.size == 0):
			return fmt.Errorf("%s: it holds events of node %q, and this is %q; give each node its own folder", s.path, l.Node,
				s.node)
		case l.Format > spoolFormat:
			return fmt.Errorf("%s has format %d; this version reads up to format %d; start the version that wrote it, or give "+
				"another folder with --data", s.path, l.Format, spoolFormat)
		default:
			s.take(l, len(text))
		}
		s.size += int64(len(text))
	}
	if s.size == 0 {
		return s.compact()
	}
	if s.damaged > 0 {
		_ = s.compact() // what is there can be said all the same
	}
	return os.Truncate(s.path, s.size)
}

// parseLine reads a line, with its end.
func parseLine(data []byte) (l line, err error) {
	const head = 8 + 1 + 8 + 1
	if len(data) <= head {
		return l, errors.New("a short line")
	}
	text := data[head : len(data)-1]
	if !bytes.Equal(frame(text), data) {
		return l, errors.New("a line with another length or checksum")
	}
	return l, json.Unmarshal(text, &l)
}

// frame is a line as it is written: the text with its length and its checksum in front.
func frame(text []byte) []byte {
	sum := crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, "%08x %08x %s\n", len(text), sum, text)
}

// take does what a line says to what waits.
func (s *spool) take(l line, length int) {
	s.number = max(s.number, l.Number)
	if l.News != nil {
		s.waiting = append(s.waiting, entry{l.ID, l.News, int64(length)})
		s.live += int64(length)
	}
	if l.Stored == "" {
		return
	}
	gone := s.waiting[:1+slices.IndexFunc(s.waiting, func(e entry) bool { return e.id == l.Stored })]
	for _, e := range gone {
		s.live -= e.size
	}
	s.waiting = s.waiting[len(gone):]
	clear(gone)
}

// write appends a line. When it fails the file is as it was.
func (s *spool) write(l line, sync bool) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	data := frame(text)
	if _, err = f.WriteAt(data, s.size); err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Truncate(s.path, s.size)
		return err
	}
	s.take(l, len(data))
	s.size += int64(len(data))
	return nil
}

// compact writes what waits into a new file, which takes the old one's place as a whole.
func (s *spool) compact() error {
	lines := []line{{Node: s.node, Format: spoolFormat}, {Number: s.number}}
	for _, e := range s.waiting {
		lines = append(lines, line{ID: e.id, News: e.event})
	}
	var data []byte
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		data = append(data, frame(text)...)
	}
	if err := outfile.Private(s.path, data); err != nil {
		return err
	}
	s.size = int64(len(data))
	return nil
}

// errFull tells that something was not kept.
var errFull = errors.New("the spool is full")

// add keeps an event: when it returns, the disk has it.
func (s *spool) add(n *fleet.Event) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if len(text) > fleet.MaxBytes-64 { // it gets a number yet
		return fmt.Errorf("event of kind %s has %d bytes; at most %d are allowed", n.Kind, len(text), fleet.MaxBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live+int64(len(text))+around > s.most {
		s.dropped++
		return fmt.Errorf("event of kind %s, %d others waiting: %w", n.Kind, len(s.waiting), errFull)
	}
	s.count++
	if err := s.write(line{ID: fmt.Sprintf("%s.%d", s.origin, s.count), News: text}, true); err != nil {
		return err
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

// Next is the oldest that waits.
func (s *spool) Next() (id string, n *fleet.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return "", nil, nil
	}
	n = new(fleet.Event)
	return s.waiting[0].id, n, json.Unmarshal(s.waiting[0].event, n)
}

// Stored takes off what the store has. That need not reach the disk, as when it is full: the next line that fits says
// it too, and what waits again after a power cut is found in the store.
func (s *spool) Stored(id string, number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, l := len(s.waiting), line{Stored: id, Number: number}
	if s.take(l, 0); len(s.waiting) == before {
		return false
	}
	_ = s.write(l, false)
	if s.size > 2*s.live+compactFrom {
		_ = s.compact() // it is tried again
	}
	return true
}

// state is what a beat says: what waits, the number of the last that is stored, as far as this spool knows, and how
// many were not kept for want of room.
func (s *spool) state() (waiting int, last uint64, dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting), s.number, s.dropped
}
