package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"busbar.dev/internal/outfile"
)

const (
	markFormat = 1
	mostTails  = 64
	mostFound  = 4096
)

// Mark is what a server knows of its store apart from the store, in a small file beside it: how far the store had got.
// A store that lost its end ends before that, and nothing in the store says so. The zero value is kept in memory only.
type Mark struct {
	path string

	mu      sync.Mutex // guards following
	at      marked
	before  marked // as an earlier process left it, until the store was read
	changed bool   // since it was written
}

// marked is the file.
type marked struct {
	Format int `json:"format"`
	// Last is the greatest sequence of the stream that was read or acknowledged, and At when it was stored.
	Last uint64    `json:"last"`
	At   time.Time `json:"at"`
	// Own is the greatest number of this server's own events.
	Own uint64 `json:"own"`
	// Tails are ends of the stream that were lost: their sequences are given again.
	Tails []Tail `json:"tails,omitempty"`
	// Found is when something was found missing first.
	Found map[string]time.Time `json:"found,omitempty"`
}

// Tail is sequences that were the last of the stream and were lost, and between which times they were stored.
type Tail struct {
	From  uint64    `json:"from"`
	To    uint64    `json:"to"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until"`
}

// openMark reads the mark of a store; without a file it begins.
func openMark(path string) (*Mark, error) {
	m := &Mark{path: path, at: marked{Format: markFormat}}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m.at)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w; remove it to start without a check for a lost end of the store", path,
			err)
	case m.at.Format != markFormat:
		return nil, fmt.Errorf("%s has format %d; this version reads format %d; start the version that wrote it", path,
			m.at.Format, markFormat)
	}
	m.before = m.at
	return m, nil
}

// note takes note of a sequence that is stored, and of the number of an event that is this process's own, or 0.
func (m *Mark) note(seq uint64, at time.Time, own uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own > maxCounted {
		own = 0
	}
	if seq <= m.at.Last && own <= m.at.Own {
		return
	}
	if seq > m.at.Last {
		m.at.Last, m.at.At = seq, at
	}
	m.at.Own = max(m.at.Own, own)
	m.changed = true
}

// own is the greatest number that is known to be taken.
func (m *Mark) own() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Own
}

// compare holds the mark of an earlier process against how far the store could be read, once. last is the stream's last
// sequence: a store that drops what is old may have run empty as it should.
func (m *Mark) compare(read uint64, at time.Time, trims bool, last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if emptied := trims && read == 0 && last >= m.before.Last; m.before.Last > read && !emptied {
		m.at.Tails = append(m.at.Tails, Tail{read + 1, m.before.Last, at, m.before.At})
		m.at.Tails = m.at.Tails[max(0, len(m.at.Tails)-mostTails):]
		m.at.Last, m.at.At, m.changed = read, at, true
	}
	m.before = marked{}
}

// Tails are the ends of the stream that were lost.
func (m *Mark) Tails() []Tail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at.Tails)
}

// Found is when something was first found missing: now, where it was not known.
func (m *Mark) Found(what string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known := m.at.Found[what]
	if !known {
		at = now.UTC().Truncate(time.Second)
		if m.at.Found == nil {
			m.at.Found = map[string]time.Time{}
		}
		if len(m.at.Found) < mostFound { // a node may make up any number, and what was known stays known
			m.at.Found[what], m.changed = at, true
		}
	}
	return at
}

// write replaces the file where something has changed, and waits for the disk.
func (m *Mark) write() error {
	m.mu.Lock()
	changed, now := m.changed, m.at
	m.changed = false
	now.Found = maps.Clone(now.Found)
	m.mu.Unlock()
	if !changed {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return outfile.Private(m.path, append(data, '\n'))
}
