package hub

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/internal/test/eventually"
)

// serveAPI is where the hub's endpoints are, without the page's roles.
func serveAPI(t *testing.T, h *Hub) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	for _, x := range h.Endpoints() {
		mux.HandleFunc(x.Method+" "+x.Path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
			x.Serve(w, r, "tester")
		})
	}
	return here.serve(t, mux.ServeHTTP)
}

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := here.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(4)
		h, _ := start(t, m, nil)
		at := serveAPI(t, h)
		code, text := ask(t, "POST", at+"/api/fleet/orders", `{"what":{"measure":"pairs","warm":0,"iters":0},"caps":{},"by":"somebody else","state":"cancelled","sweep":7}`)
		var o fleet.OrderReply
		if err := json.Unmarshal([]byte(text), &o); code != 201 || err != nil || o.By != "tester" ||
			o.State == fleet.Cancelled ||
			o.Sweep > 1 || o.ID == "" {
			t.Fatalf("%d %v %s", code, err, text)
		}
		code, text = ask(t, "GET", at+"/api/fleet/orders/"+o.ID+"?wait=15", "")
		if err := json.Unmarshal([]byte(text), &o); code != 200 || err != nil || o.State != fleet.Done || o.Verdict == nil ||
			len(o.Verdict.Healthy) != 4 || len(o.Verdict.Unhealthy) != 0 {
			t.Fatalf("%d %v %s", code, err, text)
		}
		for _, c := range []struct {
			method, path, body string
			code               int
			has                string
		}{
			{"GET", "/api/fleet/nodes", "", 200, `"name":"n3"`},
			{"GET", "/api/fleet/pairs?figure=latency&nodes=n[0-1]", "", 200, `"values":[[null,10],[10,null]]`},
			{"GET", "/api/fleet/pairs?figure=colour", "", 400, "expected rate"},
			{"GET", "/api/fleet/pairs?nodes=n[0-99999999]", "", 400, ""},
			{"GET", "/api/fleet/pairs?nodes=n[0-5000]", "", 400, "at most"},
			{"GET", "/api/fleet/link?from=n0&to=n1", "", 200, `"rate_GBps":10`},
			{"GET", "/api/fleet/link?from=n0&to=n1", "", 200, "4 MiB messages, 10 times"},
			{"GET", "/api/fleet/nodes?nodes=n[1-2]", "", 200, `{"nodes":[{"name":"n1"`},
			{"GET", "/api/fleet/nodes?nodes=n[1", "", 400, "nodes:"},
			{"GET", "/api/fleet/link?from=n0&to=n0", "", 400, `two nodes"`},
			{"GET", "/api/fleet/link?from=n0&to=nobody", "", 404, "nobody never joined"},
			{"GET", "/api/fleet/link?from=%00&to=n0", "", 400, "two nodes"},
			{"GET", "/api/fleet/findings", "", 200, `"findings":[]`},
			{"GET", "/api/fleet/orders", "", 200, o.ID},
			{"GET", "/api/fleet/orders/none", "", 404, "no such order"},
			{"GET", "/api/fleet/orders/" + o.ID + "?wait=-1", "", 400, "seconds"},
			{"GET", "/api/fleet/orders/" + o.ID + "?wait=NaN", "", 400, "seconds"},
			{"DELETE", "/api/fleet/orders/none", "", 404, "no such order"},
			{"DELETE", "/api/fleet/nodes/none", "", 404, "has joined"},
			{"DELETE", "/api/fleet/nodes/n3", "", 409, "stop its agent first"},
			{"DELETE", "/api/fleet/orders/" + o.ID, "", 409, "ended"},
			{"POST", "/api/fleet/orders", "", 400, "the order"},
			{"POST", "/api/fleet/orders", "", 400, "{}"},
			// so far away that it would be due again at once, without an end
			{"POST", "/api/fleet/orders", `{"every_ns":10000000000,"from":"1700-01-01T00:00:00Z"}`, 400, "2000 to 2200"},
			{"POST", "/api/fleet/orders", `{"every_ns":10000000000,"from":"9000-01-01T00:00:00Z"}`, 400, "2000 to 2200"},
			{"POST", "/api/fleet/orders", "null", 400, "{}"},
			{"POST", "/api/fleet/orders", " null ", 400, "an object"},
			{"POST", "/api/fleet/orders", "[]", 400, "the order"},
			{"POST", "/api/fleet/orders", `{} {}`, 400, "unexpected data"},
			{"POST", "/api/fleet/orders", `{"run":"rm -rf /"}`, 400, "unknown field"},
			{"POST", "/api/fleet/orders", `{"what":{"measure":"shell","iters":1}}`, 400, "are known"},
			{"POST", "/api/fleet/orders", `{"nodes":["n0","nobody"]}`, 400, "never joined"},
			{"POST", "/api/fleet/orders", `{"nodes":["n0"]}`, 400, "2 to"},
			{"POST", "/api/fleet/orders", `{"nodes":["n0","n0"]}`, 400, "twice"},
			{"POST", "/api/fleet/orders", `{"every_ns":1}`, 400, "at least"},
			{"POST", "/api/fleet/orders", `{"what":{"measure":"pairs","large_bytes":1e15,"iters":1}}`, 400, ""},
			{"POST", "/api/fleet/orders", `{"caps":{"time_ns":9000000000000000}}`, 400, "at most"},
			{"POST", "/api/fleet/orders", `{"job":"` + strings.Repeat("x", 1<<21) + `"}`, 413, ""},
		} {
			code, text := ask(t, c.method, at+c.path, c.body)
			if code != c.code || !strings.Contains(text, c.has) {
				t.Errorf("%s %s %.60s: %d %.200s, want %d and %q", c.method, c.path, c.body, code, text, c.code, c.has)
			}
			if code >= 400 && !json.Valid([]byte(text)) {
				t.Errorf("%s %s: the error is no JSON: %.100s", c.method, c.path, text)
			}
		}
	})
}

func TestFleetIsOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.join(1)
		h, _ := start(t, m, nil)
		node := `{"version":1,"types":[{"name":"t","devices":[{"kind":"numa","name":"numa0"},{"kind":"gpu","name":"gpu0","parent":"numa0","model":{"value":"NVIDIA H100 80GB HBM3","origin":"read"}},{"kind":"nic","name":"nic0","label":"mlx5_0","parent":"numa0"}]}],"nodes":[{"hosts":"liar","type":"t"}]}`
		if _, err := clusterfile.Read("x", strings.NewReader(node)); err != nil {
			t.Fatal(err)
		}
		join := func(name fleet.Name, text string) {
			m.keep(&fleet.Event{
				At: time.Now().UTC(), Node: name, Kind: fleet.KindJoined,
				Joined: &fleet.Joined{Meet: "x:1", Map: json.RawMessage(text)},
			})
		}
		join("g2", node)
		join("g10", node)
		join("bad1", `{"nodes":17}`)
		join("bad2", `"text"`)
		eventually.Holds(t, "all have joined", func() bool { return len(h.View().asked(&fleet.Order{})) == 5 })
		c := h.Cluster()
		var names []string
		for _, x := range c.Hosts {
			names = append(names, x.Name)
		}
		if got := strings.Join(names, " "); !strings.Contains(got, "g2") || !strings.Contains(got, "g10") ||
			strings.Contains(got, "liar") {
			t.Errorf("hosts %s", got)
		}
		if s := c.Summary(); s.GPUs != 2 {
			t.Errorf("%+v", s)
		}
		if h.Cluster() != c {
			t.Error("it was made again without need")
		}
		i := c.HostIndex("g2")
		if i < 0 || c.TypeOf(i) == nil || c.TypeOf(i) != c.TypeOf(c.HostIndex("g10")) {
			t.Error("equal nodes are of different types")
		}
		at := serveAPI(t, h)
		for _, format := range []string{"", "?format=yaml"} {
			code, text := ask(t, "GET", at+"/api/fleet/cluster"+format, "")
			f, err := clusterfile.Read("answer", strings.NewReader(text))
			if code != 200 || err != nil {
				t.Fatalf("%d: %v\n%s", code, err, text)
			}
			if back := cluster.Join(f); back.Summary().GPUs != 2 {
				t.Errorf("%s: %+v", format, back.Summary())
			}
		}
	})
}

func TestLeavesOfACluster(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 70)
	if err != nil {
		t.Fatal(err)
	}
	if err := hardware.Describe(hardware.Description{Speed: "NDR", Oversubscription: 1, NodesPerLeaf: 8}, c); err != nil {
		t.Fatal(err)
	}
	leaves := leavesOf(c)
	count := map[string]int{}
	for _, l := range leaves {
		count[l]++
	}
	if len(leaves) != 70 || len(count) < 2 {
		t.Errorf("%d hosts on %v", len(leaves), count)
	}
}
