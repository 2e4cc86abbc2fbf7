package query

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
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/result/pairs"
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
		"", "local", "ports", "pair", "sum", "rdma-ports", "rdma-serve", "rdma-run", "rdma-end", "x",
		strings.Repeat("a", 9999),
	} {
		for _, rest := range []string{
			``, `,"limit":-1`, `,"limit":1000000000`, `,"limit":9223372036854775807`, `,"limit":"1s"`,
			`,"limit":1000000000,"rdma":{}`, `,"limit":1000000000,"rdma":null`,
			`,"limit":1000000000,"rdma":{"server":"--out_json_file=x:1"}`, `,"limit":1000000000,"rdma":{"server":"localhost:1"}`,
			`,"limit":1000000000,"rdma":{"server":"127.0.0.1:1","tcp":-1}`,
			`,"limit":1000000000,"rdma":{"server":"127.0.0.1:1","tcp":65536}`,
			`,"limit":1000000000,"rdma":{"server":"127.0.0.1:1","tcp":1,"end":{"Device":"--x","Port":-1,"GPU":7}}`,
			`,"limit":1000000000,"rdma":{"job":"` + strings.Repeat("j", 300) + `"}`,
			`,"limit":1000000000,"seat":{"epoch":0,"rank":-1,"size":-1,"meet":"127.0.0.1:1"}`,
			`,"limit":1000000000,"seat":{"epoch":4294967296}`, `,"limit":1000000000,"seat":{"epoch":1,"rank":1,"size":2,"meet":"x"}`,
			`,"limit":1000000000,"seat":{"epoch":1,"rank":1,"size":2,"meet":"127.0.0.1:0"}`,
			`,"limit":1000000000,"seat":{"epoch":1,"rank":9,"size":4611686018427387904,"meet":"127.0.0.1:1"}`,
		} {
			list = append(list, fmt.Sprintf(`{"id":0,"do":%q%s}`, do, rest))
		}
	}
	return append(list, "null", "[]", "1", `"x"`, strings.Repeat("[", 5000)+strings.Repeat("]", 5000))
}

// serves is a rank that does an order of a rank 0 in the wrong hands, and how it ends.
func serves(t *testing.T, w checkWorker, order string) error {
	t.Helper()
	bad, good := twoInStar(t)
	defer good.Close()
	ended := make(chan error, 1)
	w.star = good
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- w.serve(ctx) }()
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

// TestHostileOrders: a rank of a measurement does what such a rank has to do, whoever is rank 0, and ends with an error
// at what it has not: the rank of a measurement by perftest has no node to look at.
func TestHostileOrders(t *testing.T) {
	worker := func() checkWorker {
		return checkWorker{rdma: &rdmaWorker{q: &BenchRDMA{Verb: "write"}}}
	}
	for _, do := range []string{"local", "ports", "pair", "sum", "x"} {
		err := serves(t, worker(), fmt.Sprintf(`{"do":%q,"limit":1000000000}`, do))
		if err == nil || !strings.Contains(err.Error(), "expected one of rdma-ports") {
			t.Errorf("%s, of a rank that runs perftest: %v", do, err)
		}
	}
	check := worker()
	check.q, check.plan = &Check{}, bench.PairPlan{Small: 8, Large: 8, Iters: 1}
	for _, o := range hostileOrders() {
		for _, w := range []checkWorker{worker(), check} {
			if strings.Contains(o, `"local","limit":1000000000`) && w.q != nil {
				continue // it is what a check is for
			}
			if err := serves(t, w, o); err == nil {
				t.Errorf("%.200s: rank 0 was gone, or worse, and nobody noticed", o)
			}
		}
	}
}

// TestHostileReplies: what a rank replies that cannot be is its own loss; rank 0 goes on.
func TestHostileReplies(t *testing.T) {
	cell := func(from, to any) string {
		return fmt.Sprintf(`{"cells":[{"From":%v,"To":%v},{"From":1,"To":0}],"took":1}`, from, to)
	}
	for _, tt := range []struct{ do, reply string }{
		{"pair", cell(0, 0)},
		{"pair", cell(-1, 1)},
		{"pair", cell(2, 1)},
		{"pair", cell("9223372036854775807", 1)},
		{"pair", `{"cells":[{},{},{}]}`},
		{"pair", `{"id":7}`},
		{"pair", `{"took":-1}`},
		{"pair", `{"by":"carrier pigeon"}`},
		{"pair", `{"counts":{"Segments":-1}}`},
		{"pair", `{"local":{}}`},
		{"pair", `{"cells":[{"From":0,"To":1,"Lost":-1}]}`},
		{"sum", `{"wrong":-1}`},
		{"sum", `{"wrong":9223372036854775807}`},
		{"sum", cell(0, 1)},
		{"local", `{"local":{"gpus":-1}}`},
		{"local", `{"local":{"gpus":1000000}}`},
		{"local", `{"local":{"ports":[{"name":"` + strings.Repeat("x", 999) + `"}]}}`},
		{"rdma-ports", `{"ports":[{"device":"","port":1}]}`},
		{"rdma-ports", `{"ports":[{"device":"a","port":-1}]}`},
		{"rdma-ports", `{"ports":[{"device":"a","port":1,"GBps":-1}]}`},
		{"rdma-serve", `{"tcp":-1}`},
		{"rdma-serve", `{"tcp":65536}`},
		{"rdma-run", `{"cells":[{},{}]}`},
		{"sum", "null"},
		{"sum", "[]"},
		{"sum", `"x"`},
	} {
		good, bad := twoInStar(t)
		go func() {
			if _, err := bad.Next(t.Context()); err == nil {
				_ = bad.Reply(json.RawMessage(strings.Replace(tt.reply, "{", `{"id":0,`, 1)))
			}
			_, _ = bad.Next(t.Context())
			bad.Close()
		}()
		h := newCheckHub(checkWorker{star: good, rdma: &rdmaWorker{q: &BenchRDMA{}}})
		replies := h.ask(t.Context(), map[int]checkOrder{1: {Do: tt.do}}, checkMost)
		if valid := tt.reply == "null"; len(replies) > 0 && !valid || h.lost[1] == "" && !valid {
			t.Errorf("%s: %.100s was believed: %+v", tt.do, tt.reply, replies)
		}
		good.Close()
	}
}

// FuzzOrder: what the decoder of orders lets pass is what such a rank does.
func FuzzOrder(f *testing.F) {
	for _, o := range hostileOrders() {
		f.Add([]byte(o), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, check bool) {
		w := checkWorker{rdma: &rdmaWorker{q: &BenchRDMA{}}}
		if check {
			w.q = &Check{}
		}
		o, err := w.decodeOrder(body)
		if err == nil && o.Do != "end" && (o.Limit <= 0 || o.Limit > checkMost ||
			!check && (o.RDMA == nil || o.Do != "rdma-ports" && o.RDMA.End.GPU != rdma.End{GPU: -1}.GPU)) {
			t.Errorf("%+v", o)
		}
	})
}

// FuzzReply: what the decoder of replies lets pass is within all bounds.
func FuzzReply(f *testing.F) {
	f.Add("pair", []byte(`{"id":0,"cells":[{"From":0,"To":1,"Rate":1},{"From":1,"To":0}],"by":"tcp","took":1}`))
	f.Add("local", []byte(`{"local":{"gpus":8,"findings":[{"ranks":[-1]}],"ports":[{"name":"a/1"}]}}`))
	f.Add("rdma-ports", []byte(`{"ports":[{"device":"mlx5_0","port":1,"GBps":50}]}`))
	f.Fuzz(func(t *testing.T, do string, body []byte) {
		o := checkOrder{Do: do}
		r, err := o.decodeReply(body)
		if err != nil {
			return
		}
		for _, m := range r.Cells {
			if do == "pair" && (m.From+m.To != 1 || m.From*m.To != 0) || m.Rate < 0 || m == (pairs.Measure{From: -1}) {
				t.Errorf("%+v", m)
			}
		}
		if r.Took < 0 || r.Wrong < 0 || r.TCP < 0 || len(r.Failed) > checkText {
			t.Errorf("%+v", r)
		}
	})
}
