package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/device"
	"busbar.dev/internal/test/eventually"
)

// twoInStar is the two ranks of a star.
func twoInStar(t *testing.T) (rank0, rank1 *engine.Star) {
	t.Helper()
	cfg := engine.Config{
		Size: 2, Meet: filepath.Join(t.TempDir(), "meet"), Bind: "127.0.0.1", Transport: engine.TCP,
		JoinTimeout: eventually.Limit, Timeout: time.Minute,
	}
	stars, errs := [2]*engine.Star{}, make(chan error, 2)
	for r := range stars {
		go func() {
			c := cfg
			c.Rank = r
			var err error
			stars[r], err = engine.JoinStar(t.Context(), c)
			errs <- err
		}()
	}
	for range stars {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return stars[0], stars[1]
}

// hostileOrders are orders with one field at or beyond its bounds.
func hostileOrders() (list []string) {
	for _, do := range []string{
		"", "look", "later", "pair", "sum", "ports", "gpus", "gpu", "x", strings.Repeat("a", 9999),
	} {
		for _, rest := range []string{
			``, `,"limit":-1`, `,"limit":1000000000`, `,"limit":9223372036854775807`, `,"limit":"1s"`,
			`,"limit":1000000000,"rdma":{}`, `,"limit":1000000000,"rdma":null`,
			`,"limit":1000000000,"rdma":{"peer":"--out_json_file=x:1"}`, `,"limit":1000000000,"rdma":{"peer":"localhost:1"}`,
			`,"limit":1000000000,"rdma":{"peer":"127.0.0.1:1","gpu":-2}`,
			`,"limit":1000000000,"rdma":{"peer":"127.0.0.1:1","gpu":65536}`,
			`,"limit":1000000000,"rdma":{"peer":"127.0.0.1:1","port":"--x/-1","gpu":7}`,
			`,"limit":1000000000,"job":"` + strings.Repeat("j", 300) + `"`,
			`,"limit":1000000000,"gpu":{"do":"gpus"},"worker":-1`, `,"limit":1000000000,"gpu":{"do":"settings"}`,
			`,"limit":1000000000,"seat":{"epoch":0,"rank":-1,"size":-1,"meet":"127.0.0.1:1"}`,
			`,"limit":1000000000,"seat":{"epoch":4294967296}`, `,"limit":1000000000,"seat":{"epoch":1,"rank":1,"size":2,"meet":"x"}`,
			`,"limit":1000000000,"seat":{"epoch":1,"rank":1,"size":2,"meet":"127.0.0.1:0"}`,
			`,"limit":1000000000,"seat":{"epoch":1,"rank":9,"size":4611686018427387904,"meet":"127.0.0.1:1"}`,
		} {
			list = append(list, fmt.Sprintf(`{"do":%q%s}`, do, rest))
		}
	}
	return append(list, "null", "[]", "1", `"x"`, strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
}

// serves is a rank that does an order of a rank 0 in the wrong hands, and how it ends.
func serves(t *testing.T, m member, order string) error {
	t.Helper()
	bad, good := twoInStar(t)
	defer good.Close()
	ended := make(chan error, 1)
	m.star = good
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- m.serve(ctx) }()
	if err := bad.Order(1, json.RawMessage(order)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		bad.Close()
		return err
	case <-bad.Replies():
	}
	bad.Close()
	return <-ended
}

// members are those of a measurement by perftest, of a check, and of one by busbar-gpu.
func members() map[string]member {
	node := func() *Node { return &Node{} }
	return map[string]member{
		"perftest": {rdma: &Perftest{Verb: "write"}},
		"check": {
			rdma: &Perftest{Verb: "write"}, look: func(context.Context) *Node { return node() }, later: node,
			plan: bench.PairPlan{Small: 8, Large: 8, Iters: 1},
		},
		"GPUs": {gpus: device.Team{}},
	}
}

// TestHostileOrders: a rank of a measurement does what such a rank has to do, whoever is rank 0, and ends with an error
// at what it has not: the rank of a measurement by perftest has no node to look at.
func TestHostileOrders(t *testing.T) {
	for name, dos := range map[string][]string{
		"perftest": {"look", "later", "sum", "gpus", "x"}, "check": {"gpus", "gpu", "x"},
		"GPUs": {"pair", "ports", "look", "x"},
	} {
		for _, do := range dos {
			err := serves(t, members()[name], fmt.Sprintf(`{"do":%q,"limit":1000000000}`, do))
			if err == nil || !strings.Contains(err.Error(), "not part of this measurement") {
				t.Errorf("%s, of a rank for %s: %v", do, name, err)
			}
		}
		for _, o := range hostileOrders() {
			if err := serves(t, members()[name], o); err == nil {
				t.Errorf("%s, %.200s: rank 0 was gone, or worse, and nobody noticed", name, o)
			}
		}
	}
}

// TestHostileReplies: what a rank replies that cannot be is its own loss; rank 0 goes on.
func TestHostileReplies(t *testing.T) {
	cell := func(from, to any) string {
		return fmt.Sprintf(`{"cells":[{"from":%v,"to":%v},{"from":1,"to":0}]}`, from, to)
	}
	for _, tt := range []struct{ do, reply string }{
		{"pair", cell(0, 0)},
		{"pair", cell(-1, 1)},
		{"pair", cell(2, 1)},
		{"pair", cell("9223372036854775807", 1)},
		{"pair", `{"cells":[{},{},{}]}`},
		{"pair", `{"by":"carrier pigeon"}`},
		{"pair", `{"node":{}}`},
		{"pair", `{"ports":[{"Name":"a/1"}]}`},
		{"pair", `{"gpus":1}`},
		{"pair", `{"cells":[{"from":0,"to":1,"lost":-1}]}`},
		{"pair", `{"cells":[{"from":0,"to":1,"bandwidth_GBps":-1}]}`},
		{"sum", `{"wrong":-1}`},
		{"sum", `{"wrong":9223372036854775807}`},
		{"sum", cell(0, 1)},
		{"look", `{"node":{"gpus":-1}}`},
		{"look", `{"node":{"gpus":1000000}}`},
		{"look", `{"node":{"ports":[{"Name":"` + strings.Repeat("x", 999) + `/1"}]}}`},
		{"ports", `{"ports":[{"Name":"/1"}]}`},
		{"ports", `{"ports":[{"Name":"a/-1"}]}`},
		{"ports", `{"ports":[{"Name":"a/1","Rate":-1}]}`},
		{"gpus", `{"gpus":-1}`},
		{"gpus", `{"gpus":1000000000}`},
		{"sum", "null"},
		{"sum", "[]"},
		{"sum", `"x"`},
	} {
		good, bad := twoInStar(t)
		go func() {
			if _, err := bad.Next(t.Context()); err == nil {
				_ = bad.Reply(json.RawMessage(tt.reply))
			}
			_, _ = bad.Next(t.Context())
			bad.Close()
		}()
		h := newHub(member{star: good})
		r := h.ask(t.Context(), 1, order{Do: tt.do}, mostLimit)
		if valid := tt.reply == "null"; !r.lost && !valid || h.away(1) == "" && !valid {
			t.Errorf("%s: %.100s was believed: %+v", tt.do, tt.reply, r)
		}
		h.end()
		good.Close()
	}
}

// FuzzOrder: what the decoder of orders lets pass is what such a rank does.
func FuzzOrder(f *testing.F) {
	for _, o := range hostileOrders() {
		f.Add([]byte(o), "check")
	}
	f.Fuzz(func(t *testing.T, body []byte, name string) {
		m := members()[name]
		o, err := m.decodeOrder(body)
		if err == nil && o.Do != "end" && (o.Limit <= 0 || o.Limit > mostLimit || !m.accepts(o.Do) ||
			o.RDMA != nil && o.RDMA.GPU != -1 || o.GPU != nil) {
			t.Errorf("%+v", o)
		}
	})
}

// FuzzReply: what the decoder of replies lets pass is within all bounds.
func FuzzReply(f *testing.F) {
	f.Add("pair", []byte(`{"cells":[{"from":0,"to":1,"bandwidth_GBps":1},{"from":1,"to":0}],"by":"tcp"}`))
	f.Add("look", []byte(`{"node":{"gpus":8,"findings":[{"ranks":[-1]}],"ports":[{"Name":"a/1"}]}}`))
	f.Add("ports", []byte(`{"ports":[{"Name":"mlx5_0/1","Rate":50}]}`))
	f.Fuzz(func(t *testing.T, do string, body []byte) {
		var r reply
		if json.Unmarshal(body, &r) != nil || (&order{Do: do}).checkReply(&r) != nil {
			return
		}
		for _, m := range r.Cells {
			if do != "pair" || m.From+m.To != 1 || m.From*m.To != 0 || m.Rate < 0 || m.Failed != "" {
				t.Errorf("%+v", m)
			}
		}
		if r.Wrong < 0 || r.GPUs < 0 || len(r.Failed) > mostText || len(r.Ports) > mostDevices {
			t.Errorf("%+v", r)
		}
	})
}
