package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/osdep"
)

// maxSpool is how much may wait for a server that is not there.
const maxSpool = 64 << 20

const (
	spoolName   = "spool"
	compactFrom = 1 << 20 // bytes of what is stored already that are worth a new file
	around      = 128     // of a line around its events, at most
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
	most = cmp.Or(most, maxSpool)
	if err := osdep.MakePrivate(dir); err != nil {
		return nil, err
	}
	unlock, err := bus.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	s := &spool{
		path: filepath.Join(dir, spoolName), most: most, unlock: unlock, more: make(chan struct{}, 1),
		origin: bus.NewOrigin(), node: node,
	}
	if err := s.load(); err != nil {
		if s.f != nil {
			s.f.Close()
		}
		unlock()
		return nil, err
	}
	return s, nil
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
		return fmt.Errorf("event of kind %s has %d bytes; at most %d are allowed", n.Kind, len(text), fleet.MaxBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if float64(s.live+int64(len(text))+around) > share(n.Kind)*float64(s.most) {
		s.dropped++
		return fmt.Errorf("event of kind %s, %d others waiting: %w", n.Kind, len(s.waiting), errFull)
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
	n := new(fleet.Event)
	l, err := parseLine(data)
	if err == nil {
		err = json.Unmarshal(l.News, n)
	}
	if err != nil {
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

// close gives the folder back.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.Close()
	s.unlock()
}
