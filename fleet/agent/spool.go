package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// maxSpool is how much may wait for a server that is not there.
const maxSpool = 64 << 20

const (
	spoolName   = "spool"
	compactFrom = 1 << 20 // bytes of what is stored already that are worth a new file
	around      = 128     // of a line around its events, at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line is one record of the spool's file. Exactly one of its kinds is set.
type line struct {
	Node   fleet.Name      `json:"node,omitzero"`    // of the first line: whose spool it is
	ID     string          `json:"id,omitempty"`     // with News
	News   json.RawMessage `json:"news,omitempty"`   // something to say
	Stored string          `json:"stored,omitempty"` // the store has everything up to this identity
	Number uint64          `json:"number,omitempty"` // and this is its number there
}

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
	f       *os.File
	size    int64 // of the file
	live    int64 // bytes of what waits
	waiting []entry
	origin  string // of what is added by this process
	count   uint64
	number  uint64 // of the last that is stored
	node    fleet.Name
	dropped int
	damaged int   // places of the file that could not be read
	owed    *line // the store has this, and the disk could not be told
	later   int64 // the size from which a new file is tried again
}

// entry is where something that waits lies in the file.
type entry struct {
	id     string
	at     int64
	length int
}

// openSpool opens the spool of a node in a folder, which belongs to this process until close.
func openSpool(dir string, node fleet.Name, most int64) (*spool, error) {
	if most == 0 {
		most = maxSpool
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := bus.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	s := &spool{path: filepath.Join(dir, spoolName), most: most, unlock: unlock, more: make(chan struct{}, 1), origin: bus.NewOrigin(), node: node}
	if err := s.load(); err != nil {
		if s.f != nil {
			s.f.Close()
		}
		unlock()
		return nil, err
	}
	return s, nil
}

// load reads what an earlier process left.
func (s *spool) load() (err error) {
	half, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".spool-*"))
	for _, name := range half {
		os.Remove(name)
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
		return s.write(line{Node: s.node}, true)
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
	from := func(at int64) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(s.f, at, info.Size()-at), 1<<16)
	}
	r, at := from(0), int64(0)
	for s.damaged < mostDamage {
		text, n, err := bus.ReadFrame(r)
		var l line
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			skipped, whole := bus.SkipFrame(from(at))
			if !whole {
				return nil
			}
			s.damaged++
			at += skipped
			r = from(at)
			continue
		}
		if l.Node != s.node && (l.Node != "" || at == 0) {
			return fmt.Errorf("%s: it holds what node %q has to say, and this is %q; give each its own folder", s.path, l.Node, s.node)
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
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	data := bus.Frame(text)
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

// errFull tells that something was not kept.
var errFull = errors.New("the spool is full")

// share is how full the spool may be for events of a kind: what can be read again later gives
// way to what cannot.
func share(k fleet.Kind) float64 {
	switch k {
	case fleet.KindCounters:
		return 0.5
	case fleet.KindMeasured:
		return 1
	}
	return 0.75
}

// add keeps an event: when it returns, the disk has it.
func (s *spool) add(n *fleet.Event) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if len(text) > fleet.MaxBytes-64 { // it gets a number yet
		return fmt.Errorf("news of kind %s has %d bytes; at most %d are allowed", n.Kind, len(text), fleet.MaxBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if float64(s.live+int64(len(text))+around) > share(n.Kind)*float64(s.most) {
		s.dropped++
		return fmt.Errorf("news of kind %s with %d things waiting: %w", n.Kind, len(s.waiting), errFull)
	}
	s.count++
	id := fmt.Sprintf("%s.%d.%08x", s.origin, s.count, crc32.Checksum(text, castagnoli))
	if err := s.write(line{ID: id, News: text}, true); err != nil {
		return err
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

// Len counts what waits.
func (s *spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// ID is the identity of what waits at a place.
func (s *spool) ID(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[i].id
}

// Event is the oldest that waits.
func (s *spool) Event() (*fleet.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.waiting[0]
	data := make([]byte, e.length)
	if _, err := s.f.ReadAt(data, e.at); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	text, _, err := bus.ReadFrame(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("%s at %d: %w", s.path, e.at, err)
	}
	var l line
	n := new(fleet.Event)
	if err := errors.Join(json.Unmarshal(text, &l), json.Unmarshal(l.News, n)); err != nil {
		return nil, fmt.Errorf("%s at %d: %w", s.path, e.at, err)
	}
	return n, nil
}

// Stored takes off what the store has. That need not reach the disk at once: what waits again
// after a power cut is found in the store.
func (s *spool) Stored(n int, number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := line{Stored: s.waiting[n-1].id, Number: number}
	if err := s.write(l, false); err != nil {
		// A disk that is full must not hold up what waits. The next line that fits says it.
		s.take(l, 0, 0)
		s.owed = &l
		return nil
	}
	if s.size-s.live < max(compactFrom, s.live) || s.size < s.later {
		return nil
	}
	if err := s.compact(); err != nil {
		s.later = s.size + compactFrom
	}
	return nil
}

// last is the number of the last that is stored, as far as this spool knows.
func (s *spool) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// lost counts what was not kept for want of room.
func (s *spool) lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// compact writes what waits into a new file, which takes the old one's place as a whole.
func (s *spool) compact() error {
	f, err := os.CreateTemp(filepath.Dir(s.path), ".spool-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when it was renamed
	var head []byte
	for _, l := range []line{{Node: s.node}, {Number: s.number}} {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		head = append(head, bus.Frame(text)...)
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

// close gives the folder back.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.Close()
	s.unlock()
}
