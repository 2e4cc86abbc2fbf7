package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Events tells pages what happens, as server-sent events of GET /api/events. Its
// zero value is ready.
type Events struct {
	mu   sync.Mutex // guards following
	subs map[chan []byte]bool
}

const (
	// eventsKept is how many events a slow page may be behind.
	eventsKept = 256
	// mostListeners bounds the pages that listen at once, and listenersOfOne those of a token: others listen too.
	mostListeners  = 256
	listenersOfOne = 64
	slowPage       = 15 * time.Second // may take to take an event
	// recheck is how often it is looked at whether who listens still may, and is there.
	recheck = 5 * time.Second
)

// listen streams events for as long as the token counts that opened the stream.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	leave, ok := s.listeners.take(clientIn(r.Context()), 1)
	if !ok {
		busy(w, "too many pages listen; try again later")
		return
	}
	defer leave()
	s.Events.stream(w, r, s.recheck, func() bool { _, ok := s.who(r); return ok })
}

// Publish sends an event to every page that listens. kind is the event's name, v
// its data as JSON. A page that does not keep up is cut off; it comes again by
// itself and asks for what it missed.
func (e *Events) Publish(kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.subs {
		select {
		case c <- text:
		default:
			delete(e.subs, c)
			close(c)
		}
	}
	return nil
}

func (e *Events) subscribe() chan []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subs == nil {
		e.subs = map[chan []byte]bool{}
	}
	c := make(chan []byte, eventsKept)
	e.subs[c] = true
	return c
}

func (e *Events) unsubscribe(c chan []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subs[c] {
		delete(e.subs, c)
		close(c)
	}
}

// stream sends what happens until the page goes away, or may listen no more.
func (e *Events) stream(w http.ResponseWriter, r *http.Request, recheck time.Duration, may func() bool) {
	c := e.subscribe()
	defer e.unsubscribe(c)
	out := http.NewResponseController(w)
	headed(w, "text/event-stream", "no-store")
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	text, ok := []byte("retry: 2000\n\n"), true
	for ok {
		_ = out.SetWriteDeadline(time.Now().Add(slowPage)) // where the connection has one
		if _, err := w.Write(text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case text, ok = <-c:
		case <-tick.C:
			text, ok = []byte(": still here\n\n"), may()
		}
	}
}
