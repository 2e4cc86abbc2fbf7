package web

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

// given is an answer, ready to be sent.
type given struct {
	code  int    // of HTTP
	mime  string // of the body
	body  []byte
	tag   string // ETag
	exit  int
	line  string // the command
	until time.Time
}

func (g *given) seal() {
	h := sha256.Sum256(g.body)
	g.tag = `"` + hex.EncodeToString(h[:12]) + `"`
}

// answers keeps the latest answers, as much as fits.
type answers struct {
	mu    sync.Mutex // guards following
	each  map[string]*given
	order []string // the oldest first
	size  int
}

const (
	maxKept   = 32 << 20
	maxAnswer = 64 << 20
)

func newAnswers() *answers { return &answers{each: map[string]*given{}} }

func (a *answers) get(key string, now time.Time) *given {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.each[key]
	if g != nil && !g.until.IsZero() && now.After(g.until) {
		return nil
	}
	return g
}

func (a *answers) put(key string, g *given) {
	if len(g.body) > maxKept/4 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.each[key] != nil {
		a.drop(slices.Index(a.order, key))
	}
	a.each[key] = g
	a.order = append(a.order, key)
	a.size += len(g.body) + len(key)
	for a.size > maxKept {
		a.drop(0)
	}
}

// drop forgets an answer. The caller holds mu.
func (a *answers) drop(i int) {
	key := a.order[i]
	a.order = slices.Delete(a.order, i, i+1)
	a.size -= len(a.each[key].body) + len(key)
	delete(a.each, key)
}
