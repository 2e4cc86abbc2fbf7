package browsertests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// order lists orders and takes new ones, which it carries out in two seconds.
func (f *fakeFleet) order(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet {
		give(w, doc{"orders": append([]doc{}, f.orders...)})
		return
	}
	var o doc
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || f.role != "order" {
		http.Error(w, `{"error":"no"}`, http.StatusForbidden)
		return
	}
	n := len(f.names)
	maps.Copy(o, doc{
		"id": fmt.Sprintf("o%d", len(f.orders)+1), "by": "first", "state": "running", "given": time.Now(),
		"heard": time.Now(), "sweep": 1, "parts": n * (n - 1) / 2, "parts_good": 0, "parts_failed": 0,
	})
	what := o["what"].(map[string]any)
	if what["iters"] == nil {
		what["iters"], what["small_bytes"] = 10, 8
	}
	f.orders = append(f.orders, o)
	w.WriteHeader(http.StatusCreated)
	give(w, o)
	go f.carryOut(o)
}

func (f *fakeFleet) carryOut(o doc) {
	for step := 1; step <= 10; step++ {
		time.Sleep(200 * time.Millisecond)
		f.mu.Lock()
		if o["state"] != "running" {
			f.mu.Unlock()
			return
		}
		o["parts_good"] = o["parts"].(int) * step / 10
		if step == 10 {
			o["state"] = "done"
		}
		f.tell("measured", doc{
			"node": f.names[0], "at": time.Now(), "measured": doc{
				"order": o["id"], "part": fmt.Sprint(step), "sweep": 1, "took_ns": 1,
				"pairs": []doc{{"from": f.names[0], "to": f.names[step%len(f.names)], "rate_GBps": 11.0, "latency_s": 9e-6}},
			},
		})
		f.tell("order", o)
		f.mu.Unlock()
	}
}

func (f *fakeFleet) oneOrder(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.orders {
		if o["id"] != r.PathValue("id") {
			continue
		}
		if r.Method == http.MethodDelete {
			o["state"], o["why"] = "cancelled", "by first"
			f.tell("order", o)
		}
		d := maps.Clone(o)
		if o["state"] == "done" {
			bad := []doc{}
			if f.slow >= 0 {
				bad = append(bad, doc{"node": f.names[f.slow], "why": "at best 5.9 GB/s, and the fleet usually shows 11.8 GB/s"})
			}
			d["verdict"] = doc{"good": f.names[:len(f.names)-1], "bad": bad}
		}
		give(w, d)
		return
	}
	http.Error(w, `{"error":"no such order"}`, http.StatusNotFound)
}

// tell sends an event to all pages; mu is held.
func (f *fakeFleet) tell(kind string, v any) {
	data, _ := json.Marshal(v)
	for c := range f.subs {
		select {
		case c <- fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data):
		default:
		}
	}
}

func (f *fakeFleet) events(w http.ResponseWriter, r *http.Request) {
	c := make(chan string, 256)
	f.mu.Lock()
	f.subs[c] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.subs, c)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 500\n\n")
	_ = out.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-c:
			fmt.Fprint(w, text)
			_ = out.Flush()
		}
	}
}
