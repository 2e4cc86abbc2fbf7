package browsertests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// doc is a document of the fleet's API, written by hand in its shape.
type doc = map[string]any

// fakeFleet stands before a real server and answers for a fleet of any size; all else it passes on.
type fakeFleet struct {
	names []string
	leaf  func(i int) int
	slow  int // a node that sends at half its rate; -1 for none
	role  string
	jobs  http.HandlerFunc // nil is the server's own
	ways  []string         // transports that pairs were measured by; nil is TCP alone

	mu     sync.Mutex
	orders []doc
	subs   map[chan string]bool
	began  time.Time
}

func newFakeFleet(n, perLeaf int) *fakeFleet {
	f := &fakeFleet{
		subs: map[chan string]bool{}, began: time.Now(), slow: -1, role: "order",
		leaf: func(i int) int { return i / perLeaf },
	}
	for i := range n {
		f.names = append(f.names, fmt.Sprintf("gpu%02d", i+1))
	}
	return f
}

// before makes the page ask the fake.
func (f *fakeFleet) before(t *testing.T, p *page) {
	t.Helper()
	at, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(
		r *httputil.ProxyRequest,
	) {
		r.SetURL(at)
		r.Out.Host = r.In.Host
	}})
	mux.HandleFunc("GET /api/me", func(w http.ResponseWriter, _ *http.Request) {
		give(w, doc{"name": "first", "role": f.role, "version": "test", "fleet": true})
	})
	mux.HandleFunc("GET /api/fleet/nodes", func(w http.ResponseWriter, _ *http.Request) {
		give(w, doc{"nodes": f.nodes(), "leads": true, "stream_read": 1})
	})
	mux.HandleFunc("GET /api/fleet/pairs", func(w http.ResponseWriter, r *http.Request) {
		give(w, f.pairs(r.URL.Query().Get("figure"), r.URL.Query().Get("by")))
	})
	mux.HandleFunc("GET /api/fleet/link", func(w http.ResponseWriter, r *http.Request) {
		give(w, f.link(r.URL.Query().Get("from"), r.URL.Query().Get("to")))
	})
	mux.HandleFunc("GET /api/fleet/findings", func(w http.ResponseWriter, _ *http.Request) { give(w, f.findings()) })
	mux.HandleFunc("GET /api/fleet/collectives", func(w http.ResponseWriter, _ *http.Request) { give(w, f.collectives()) })
	mux.HandleFunc("GET /api/fleet/cluster", func(w http.ResponseWriter, _ *http.Request) { give(w, f.cluster()) })
	mux.HandleFunc("GET /api/fleet/scene", f.scene(at))
	mux.HandleFunc("/api/fleet/orders", f.order)
	mux.HandleFunc("/api/fleet/orders/{id}", f.oneOrder)
	mux.HandleFunc("GET /api/events", f.events)
	if f.jobs != nil {
		mux.HandleFunc("GET /api/fleet/jobs", f.jobs)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	p.url = s.URL
}

func give(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeFleet) nodes() []doc {
	list := []doc{}
	for i, n := range f.names {
		d := doc{
			"name": n, "state": "up", "joined": f.began.Add(-48 * time.Hour), "heard": f.began, "version": "devel",
			"meet": "10.0.0.1:7700", "cpus": 64, "age_s": 1.2, "waiting": 0,
			"load": 0.5 + float64(i%7), "receive_GBps": 0.01 * float64(i%5), "send_GBps": 0.02,
			"bad":   false,
			"ports": []doc{{"port": "eth0", "up": true, "rate_GBps": 12.5, "state": "up", "since": f.began}},
		}
		switch {
		case i == f.slow:
			d["findings"], d["bad"] = []string{"slow-out " + n}, true
		case len(f.names) > 4 && i == len(f.names)-1:
			d["state"], d["age_s"] = "silent", 83.0
		case len(f.names) > 4 && i == 1:
			d["doing"], d["waiting"] = doc{
				"node": n, "order": "a1", "part": "a1/1/0", "done": 3, "of": 10, "text": "pair with gpu03",
			}, 2
		}
		list = append(list, d)
	}
	return list
}

// value is a figure of a pair: faster inside a leaf, one node slow at sending.
func (f *fakeFleet) value(figure string, i, j int, r *rand.Rand) float64 {
	v := 11.8
	if f.leaf(i) != f.leaf(j) {
		v = 9.9
	}
	if i == f.slow {
		v /= 2
	}
	v *= 1 + 0.02*r.NormFloat64()
	switch figure {
	case "latency":
		return 180 / v
	case "both":
		return 0.93 * v
	}
	return v
}

func (f *fakeFleet) pairs(figure, by string) doc {
	r := rand.New(rand.NewPCG(1, 2))
	n := len(f.names)
	values := make([][]*float64, n)
	for i := range values {
		values[i] = make([]*float64, n)
		for j := range values[i] {
			if i == j || n > 4 && n < 100 && (i == n-1 || j == n-1) {
				continue
			}
			// RDMA is four times as fast as TCP
			v := f.value(figure, i, j, r) * (1 + 3*float64(max(0, slices.Index(f.ways, by))))
			v = float64(int(v*1000)) / 1000
			values[i][j] = &v
		}
	}
	unit := "GB/s"
	if figure == "latency" {
		unit = "µs"
	}
	d := doc{
		"figure": figure, "unit": unit, "names": f.names, "values": values, "median": 10.2, "oldest": f.began.Add(-time.Hour),
		"newest": f.began.Add(-time.Minute),
	}
	if f.ways != nil {
		d["ways"], d["by"] = f.ways, by
	}
	return d
}

func (f *fakeFleet) link(from, to string) doc {
	r := rand.New(rand.NewPCG(3, 4))
	side := func(from, to string) []doc {
		list := []doc{}
		i, j := slices.Index(f.names, from), slices.Index(f.names, to)
		for k := range 60 {
			at := f.began.Add(-time.Duration(60-k) * 10 * time.Minute)
			v := f.value("rate", i, j, r)
			if i == f.slow && k < 45 {
				v *= 2
			}
			s := doc{"at": at, "sweep": fmt.Sprint("a1/", k), "rate_GBps": v, "latency_s": 180e-6 / v}
			if k == 20 {
				s = doc{"at": at, "sweep": fmt.Sprint("a1/", k), "failed": true}
			}
			list = append(list, s)
		}
		return list
	}
	return doc{"from": from, "to": to, "there": side(from, to), "back": side(to, from)}
}

func (f *fakeFleet) findings() doc {
	d := doc{"findings": []doc{}, "past": []doc{}}
	if f.slow < 0 {
		return d
	}
	n := f.names[f.slow]
	d["findings"] = []doc{
		{
			"id": "slow-pair", "kind": "slow-pair", "severity": "warn", "nodes": []string{f.names[0], f.names[1]},
			"since": f.began.Add(-3 * time.Hour), "factor": 0.8, "confidence": 0.7,
			"evidence": []string{"gpu01 → gpu02: 9.4 GB/s, peers 11.8 GB/s"},
			"text":     f.names[0] + " and " + f.names[1] + " reach 80% of what their peers do",
			"fix":      "look at the path between them",
		},
		{
			"id": "slow-out " + n, "kind": "slow-out", "severity": "error", "nodes": []string{n},
			"since": f.began.Add(-150 * time.Minute), "factor": 0.5, "confidence": 0.98,
			"evidence": []string{
				"7 of 7 pairs that it sends to are slow, none that it receives from", "before, it had 11.8 GB/s",
			}, "text": n + " sends at half the rate of its peers",
			"fix": "reseat or replace the cable of " + n + "; look at its NIC's firmware",
		},
	}
	d["past"] = []doc{{
		"id": "silent gpu04", "kind": "silent", "severity": "error", "nodes": []string{f.names[3]},
		"since": f.began.Add(-30 * time.Hour), "cleared": f.began.Add(-29 * time.Hour), "factor": 0.0, "confidence": 1.0,
		"evidence": []string{"no beat for 40 minutes"}, "text": f.names[3] + " is silent", "fix": "look whether it runs",
	}}
	return d
}

func (f *fakeFleet) collectives() doc {
	rows := []doc{}
	for _, size := range []int{1 << 16, 1 << 20, 1 << 24} {
		rows = append(rows, doc{
			"busbar_result": 2, "op": "all_reduce", "size_bytes": size, "dtype": "float32", "ranks": 2, "algo": "ring",
			"transport": "shm", "time_s": doc{"median": float64(size) / 8e9, "mean": float64(size) / 8e9},
		})
	}
	return doc{"collectives": []doc{{"at": f.began, "node": f.names[0], "order": "o0", "sweep": 1, "records": rows}}}
}

func (f *fakeFleet) cluster() doc {
	devices := []doc{}
	for i := range 8 {
		devices = append(devices, doc{
			"name": fmt.Sprint("gpu", i), "kind": "gpu",
			"model": doc{"value": "H100 SXM", "from": "measured", "source": "nvidia-smi"},
		})
	}
	devices = append(devices, doc{
		"name": "mlx5_0", "kind": "nic", "model": doc{"value": "ConnectX-7", "from": "measured", "source": "sysfs"},
	})
	leaves := f.leaf(len(f.names)-1) + 1
	var switches, links []doc
	for l := range leaves {
		switches = append(switches, doc{"name": fmt.Sprint("leaf", l+1), "tier": "leaf"})
		var list []string
		for i, n := range f.names {
			if f.leaf(i) == l {
				list = append(list, n)
			}
		}
		links = append(links, doc{
			"a": doc{"switch": fmt.Sprint("leaf", l+1)}, "b": doc{"hosts": strings.Join(list, ","), "nic": 0},
		})
	}
	return doc{
		"version": 1, "name": "fleet", "types": []doc{{"name": "node", "devices": devices}},
		"nodes":   []doc{{"hosts": strings.Join(f.names, ","), "type": "node"}},
		"network": doc{"switches": switches, "links": links},
		"summary": doc{"nodes": len(f.names), "gpus": 8 * len(f.names), "nics": len(f.names)},
	}
}
