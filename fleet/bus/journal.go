package bus

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"busbar.dev/fleet"
)

// DefaultJournal is how much a journal holds when nobody says otherwise: some 50,000 outcomes of pairs.
const DefaultJournal = 32 << 20

// Journal is what a publisher has stored of late, with its numbers, on the publisher's own disk. A store that was
// damaged gets it again from there. It need not be whole: what is missing in it cannot be sent again, and that is all.
// So it waits for no disk.
type Journal struct {
	path string
	most int64

	mu   sync.Mutex
	f    *os.File
	size int64
	// have is which numbers it holds, or held and dropped when it was full, in order and apart from each other.
	have []fleet.Span
}

// kept is a line of the file.
type kept struct {
	Number uint64          `json:"number"`
	ID     string          `json:"id"`
	Event  json.RawMessage `json:"event"`
}

// OpenJournal opens the journal in a folder, which one publisher uses at a time. most is its size in bytes; 0 is
// DefaultJournal.
func OpenJournal(dir string, most int64) (*Journal, error) {
	most = cmp.Or(most, DefaultJournal)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	j := &Journal{path: filepath.Join(dir, "journal"), most: most}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j.f = f
	for _, name := range j.files() {
		end, err := scan(name, func(k *kept) error { j.note(k.Number); return nil })
		if err != nil {
			f.Close()
			return nil, err
		}
		j.size = end
	}
	// What a cut left of the last line would spoil the next.
	if err := f.Truncate(j.size); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// files are those that it has, the older first: when one is full it becomes the older.
func (j *Journal) files() []string { return []string{j.path + ".old", j.path} }

// Last is the greatest number in it.
func (j *Journal) Last() uint64 {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.have) == 0 {
		return 0
	}
	return j.have[len(j.have)-1].To
}

// mostHave bounds the spans of have; of more the oldest two become one.
const mostHave = 1024

// note takes a number into have.
func (j *Journal) note(number uint64) {
	if number > fleet.MaxSeq {
		return
	}
	i := sort.Search(len(j.have), func(i int) bool { return j.have[i].To+1 >= number })
	if i == len(j.have) || number+1 < j.have[i].From {
		j.have = slices.Insert(j.have, i, fleet.Span{From: number, To: number})
	} else {
		j.have[i] = fleet.Span{From: min(j.have[i].From, number), To: max(j.have[i].To, number)}
	}
	if i+1 < len(j.have) && j.have[i].To+1 >= j.have[i+1].From {
		j.join(i)
	}
	if len(j.have) > mostHave {
		j.join(0)
	}
}

// join makes a span of have and the next one.
func (j *Journal) join(i int) {
	j.have[i].To = max(j.have[i].To, j.have[i+1].To)
	j.have = slices.Delete(j.have, i+1, i+2)
}

// had tells whether it holds a number, or is past it.
func (j *Journal) had(number uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := sort.Search(len(j.have), func(i int) bool { return j.have[i].To >= number })
	return i < len(j.have) && (i == 0 || j.have[i].From <= number)
}

// add keeps an event that is stored under its number.
func (j *Journal) add(id string, n *fleet.Event) error {
	if j == nil {
		return nil
	}
	event, err := json.Marshal(n)
	if err != nil {
		return err
	}
	text, err := json.Marshal(kept{n.Seq, id, event})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size > j.most/2 {
		if err := j.turn(); err != nil {
			return err
		}
	}
	data := Frame(text)
	if _, err := j.f.WriteAt(data, j.size); err != nil {
		_ = j.f.Truncate(j.size)
		return err
	}
	j.size += int64(len(data))
	j.note(n.Seq)
	return nil
}

// Read keeps an event that was read from the stream under its identity there, where the journal does not have it:
// another server published it, or this one before the journal could be told.
func (j *Journal) Read(id string, n *fleet.Event) error {
	if j == nil || j.had(n.Seq) {
		return nil
	}
	return j.add(id, n)
}

// turn makes the file the older one, and begins another.
func (j *Journal) turn() error {
	if err := os.Rename(j.path, j.path+".old"); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	j.f.Close()
	j.f, j.size = f, 0
	return nil
}

// Find gives what it has of some spans, in the order of the numbers, each once.
func (j *Journal) find(spans []fleet.Span) (list []numbered, err error) {
	if j == nil {
		return nil, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	bytes := 0
	for _, name := range j.files() {
		_, err := scan(name, func(k *kept) error {
			if !slices.ContainsFunc(spans, func(s fleet.Span) bool { return s.From <= k.Number && k.Number <= s.To }) ||
				bytes > resendMost {
				return nil
			}
			n := new(fleet.Event)
			if err := json.Unmarshal(k.Event, n); err != nil {
				return err
			}
			n.Seq = k.Number
			bytes += len(k.Event)
			list = append(list, numbered{k.ID, n})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return int(int64(a.n.Seq - b.n.Seq)) })
	return slices.CompactFunc(list, func(a, b numbered) bool { return a.n.Seq == b.n.Seq }), nil
}

// resendMost is how many bytes are sent again for one request; the rest is asked for again.
const resendMost = 8 << 20

// numbered is an event with its identity.
type numbered struct {
	id string
	n  *fleet.Event
}

// scan reads a file's lines and tells where the last whole one ends. Damage is passed over.
func scan(name string, each func(*kept) error) (end int64, err error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	from := func(at int64) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(f, at, 1<<62), 1<<16)
	}
	at := int64(0)
	for r := from(0); ; {
		text, n, err := ReadFrame(r)
		var k kept
		if err == nil {
			err = json.Unmarshal(text, &k)
		}
		if err != nil {
			skipped, whole := SkipFrame(from(at))
			if !whole {
				return at, nil
			}
			at += skipped
			r = from(at)
			continue
		}
		at += int64(n)
		if err := each(&k); err != nil {
			return at, fmt.Errorf("%s: %w", name, err)
		}
	}
}

// Close gives the file back.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f.Close()
}
