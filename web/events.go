package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Events tells pages what happens, as server-sent events of GET /api/events. Its
// zero value is ready.
type Events struct {
	mu   sync.Mutex             // guards following
	subs map[chan []byte]string // the token of each
}

const (
	// eventsKept is how many events a slow page may be behind.
	eventsKept = 256
	// mostListeners bounds the pages that listen at once, and listenersOfOne those of a token: others listen too.
	mostListeners  = 256
	listenersOfOne = 64
	heartbeat      = 15 * time.Second
	// recheck is how often it is looked at whether who listens still may.
	recheck = 5 * time.Second
)

// listen streams events for as long as the token counts that opened the stream.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(s.recheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, ok := s.who(r); !ok {
				cancel()
				return
			}
		}
	}()
	s.Events.ServeHTTP(w, r.WithContext(ctx))
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

func (e *Events) subscribe(token string) chan []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := 0
	for _, t := range e.subs {
		if t == token {
			own++
		}
	}
	if len(e.subs) >= mostListeners || own >= listenersOfOne {
		return nil
	}
	if e.subs == nil {
		e.subs = map[chan []byte]string{}
	}
	c := make(chan []byte, eventsKept)
	e.subs[c] = token
	return c
}

func (e *Events) unsubscribe(c chan []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, listens := e.subs[c]; listens {
		delete(e.subs, c)
		close(c)
	}
}

// ServeHTTP streams until the page goes away.
func (e *Events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := e.subscribe(clientIn(r.Context()))
	if c == nil {
		w.Header().Set("Retry-After", "10")
		Fail(w, http.StatusServiceUnavailable, "too many pages listen; try again later")
		return
	}
	defer e.unsubscribe(c)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	send := func(text []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(heartbeat)) // where the connection has one
		if _, err := w.Write(text); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) {
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case text, ok := <-c:
			if !ok || !send(text) {
				return
			}
		case <-tick.C:
			if !send([]byte(": still here\n\n")) {
				return
			}
		}
	}
}
