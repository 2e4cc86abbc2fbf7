package web

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
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
	notes string // what the command said beside it
	line  string // the command
	until time.Time
}

func (g *given) seal() {
	h := sha256.Sum256(g.body)
	g.tag = `"` + hex.EncodeToString(h[:12]) + `"`
}

// answers keeps the latest answers, as much as fits.
type answers struct {
	mu    sync.Mutex
	order *list.List // of *kept, latest first
	index map[string]*list.Element
	size  int
}

type kept struct {
	key string
	*given
}

const (
	maxKept   = 32 << 20
	maxAnswer = 64 << 20
)

func newAnswers() *answers { return &answers{order: list.New(), index: map[string]*list.Element{}} }

func (a *answers) get(key string, now time.Time) *given {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.index[key]
	if e == nil {
		return nil
	}
	k := e.Value.(*kept)
	if !k.until.IsZero() && now.After(k.until) {
		a.drop(e)
		return nil
	}
	a.order.MoveToFront(e)
	return k.given
}

func (a *answers) put(key string, g *given) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.index[key]; e != nil {
		a.drop(e)
	}
	if len(g.body) > maxKept/4 {
		return
	}
	a.index[key] = a.order.PushFront(&kept{key, g})
	a.size += len(g.body) + len(key)
	for a.size > maxKept {
		a.drop(a.order.Back())
	}
}

// drop forgets an answer. The caller holds mu.
func (a *answers) drop(e *list.Element) {
	k := e.Value.(*kept)
	a.order.Remove(e)
	delete(a.index, k.key)
	a.size -= len(k.body) + len(k.key)
}
