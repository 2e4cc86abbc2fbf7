package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/hub"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// servedFleet is a server in a process of its own, and nodes within this one.
type servedFleet struct {
	t         *testing.T
	data      string
	page, bus string // addresses
	flags     []string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when cmd has ended
	nodes     map[fleet.Name]*testNode
}

// testNode is a real agent whose measurements are made up.
type testNode struct {
	slow atomic.Int64 // percent of the usual rate; 0 is all
	took atomic.Int64 // ns
	done atomic.Int64
	stop context.CancelFunc
}

func newServedFleet(t *testing.T) *servedFleet {
	t.Helper()
	f := &servedFleet{
		t: t, data: t.TempDir(), page: freeport.Address(t), bus: freeport.Address(t), flags: []string{"--no-agent"},
		nodes: map[fleet.Name]*testNode{},
	}
	f.start()
	t.Cleanup(f.kill)
	return f
}

// TestServerIsANode: the machine of a new server is a node of its own fleet.
func TestServerIsANode(t *testing.T) {
	t.Parallel()
	f := &servedFleet{t: t, data: t.TempDir(), page: freeport.Address(t), bus: freeport.Address(t)}
	f.start()
	t.Cleanup(f.kill)
	f.allUp(1)
}

// start starts the server and waits until it answers.
func (f *servedFleet) start() {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	f.cmd = &exec.Cmd{
		Path: self, Args: []string{
			"busbar", "serve", "--data", f.data, "--listen", f.page, "--bus-listen", f.bus,
		}, Stderr: os.Stderr,
	}
	f.cmd.Args = append(f.cmd.Args, f.flags...)
	if err := f.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(f.cmd)
	f.ended = ended
	eventually.Holds(f.t, "the server answers", func() bool {
		select {
		case <-ended:
			f.t.Fatal("the server ended")
		default:
		}
		code, _, _ := f.busbar("fleet", "nodes", "--json")
		return code == exitDone
	})
}

func (f *servedFleet) kill() {
	if f.cmd != nil {
		_ = f.cmd.Process.Kill() // it may have ended
		if f.ended != nil {
			<-f.ended
		} else {
			_ = f.cmd.Wait()
		}
		f.cmd, f.ended = nil, nil
	}
}

// busbar runs a command against the server, whose address is in its folder: with a variable of the environment no two
// fleets could be tested side by side.
func (f *servedFleet) busbar(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(f.t.Context(), strings.NewReader(""), &out, &errs, append(args, "--data", f.data))
	return code, out.String(), errs.String()
}

// join starts agents.
func (f *servedFleet) join(names ...fleet.Name) {
	f.t.Helper()
	for _, name := range names {
		creds := filepath.Join(f.t.TempDir(), "node.creds")
		if code, _, errs := f.busbar("serve", "token", "node", string(name), "-o", creds); code != exitDone {
			f.t.Fatal(errs)
		}
		n := &testNode{}
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		cfg := agent.Config{
			Name: name, Bus: bus.Config{URLs: []string{"nats://" + f.bus}, Creds: creds}, Dir: f.t.TempDir(),
			Meet: freeport.Address(f.t),
			Beat: 100 * time.Millisecond, Version: "test",
			Measure: func(ctx context.Context, p *fleet.Part, _ func(int, int, string)) (*fleet.Measured, error) {
				return f.measure(ctx, n, p)
			},
		}
		wg.Go(func() {
			if err := agent.Run(ctx, cfg); err != nil {
				f.t.Error(err)
			}
		})
		n.stop = func() { stop(); wg.Wait() }
		f.t.Cleanup(n.stop)
		f.nodes[name] = n
	}
	f.allUp(len(f.nodes))
}

// allUp waits for so many nodes, each with its address for measurements: an order leaves out who has none yet.
func (f *servedFleet) allUp(nodes int) {
	f.t.Helper()
	eventually.Holds(f.t, "all nodes are up", func() bool {
		var doc query.NodesDoc
		code, out, _ := f.busbar("fleet", "nodes", "--json")
		return code == exitDone && json.Unmarshal([]byte(out), &doc) == nil && len(doc.Nodes) == nodes &&
			!slices.ContainsFunc(doc.Nodes, func(n fleet.NodeState) bool { return n.State != fleet.NodeUp || n.Meet == "" })
	})
}

func (f *servedFleet) measure(ctx context.Context, n *testNode, p *fleet.Part) (*fleet.Measured, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Duration(n.took.Load())):
	}
	n.done.Add(1)
	if p.Rank != 0 {
		return nil, nil
	}
	rate := unit.Rate(10e9)
	for _, r := range p.Ranks {
		if s := f.nodes[r].slow.Load(); s > 0 {
			rate *= unit.Rate(s) / 100
		}
	}
	a, b := p.Ranks[0], p.Ranks[1]
	return &fleet.Measured{Pairs: []fleet.PairSample{
		{From: a, To: b, Rate: rate, Latency: 1e7}, {From: b, To: a, Rate: rate, Latency: 1e7},
	}}, nil
}

// pairs orders a sweep and waits for its end.
func (f *servedFleet) pairs(more ...string) (int, fleet.OrderReply) {
	f.t.Helper()
	code, out, errs := f.busbar(append([]string{"fleet", "order", "pairs", "--wait", "--json", "--busy", "any"},
		more...)...)
	var got fleet.OrderReply
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		f.t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	return code, got
}

func TestFleetFromTheCommandLine(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	f.join("gpu01", "gpu02", "gpu03", "gpu04", "gpu05", "gpu06")
	for range 3 {
		if code, got := f.pairs(); code != exitDone || got.Measured != 15 || got.State != fleet.Done {
			t.Fatalf("exit %d, %+v", code, got)
		}
	}
	if code, out, _ := f.busbar("fleet", "nodes", "--bad"); code != exitDone || out != "" {
		t.Errorf("all are well: exit %d, %q", code, out)
	}
	if code, out, errs := f.busbar("fleet", "order", "pairs", "--wait", "--busy", "any"); code != exitDone ||
		!strings.Contains(out, "rate: median ") || !strings.Contains(out, "latency: median ") {
		t.Errorf("what was measured: exit %d, %s%s", code, out, errs)
	}
	f.nodes["gpu03"].slow.Store(50)
	for range 2 {
		f.pairs()
	}
	eventually.Holds(f.t, "gpu03 is named", func() bool {
		code, out, errs := f.busbar("fleet", "nodes", "--bad")
		return code == exitWrong && out == "gpu03\n" && strings.Contains(errs, "gpu03")
	})
	code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "gpu[01-04]", "--job", "42")
	if code != exitWrong || out != "gpu03\n" || !strings.Contains(errs, "gpu03: ") {
		t.Errorf("check: exit %d, %q, %q", code, out, errs)
	}
	if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "gpu[01-02],gpu04"); code != exitDone ||
		out != "" ||
		!strings.Contains(errs, "healthy: 3 nodes, measured by tcp") {
		t.Errorf("check: exit %d, %q, %q", code, out, errs)
	}
	if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "gpu03"); code != exitWrong || out != "gpu03\n" {
		t.Errorf("check of one: exit %d, %q, %q", code, out, errs)
	}
	if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "gpu01"); code != exitDone || out != "" {
		t.Errorf("check of one: exit %d, %q, %q", code, out, errs)
	}
	f.checkUnknown()
	f.nodes["gpu06"].stop()
	code, got := f.pairs()
	if code != exitWrong || got.Parts != 10 || got.Measured != 10 || len(got.Verdict.Unhealthy) != 1 {
		t.Errorf("without gpu06: exit %d, %+v", code, got)
	}
	// On a busy machine it may end before it could say so.
	eventually.Holds(t, "gpu06 is no longer up", func() bool {
		_, out, _ := f.busbar("fleet", "nodes", "--json")
		return strings.Count(out, `"state": "up"`) == 5
	})
	f.forget("gpu01", "gpu06")
	code, out, _ = f.busbar("fleet", "order", "list", "--all")
	if code != exitDone || strings.Count(out, "done") < 6 ||
		!regexp.MustCompile(`(?m)^\w{12} +check +42 +done `).MatchString(out) ||
		!regexp.MustCompile(`(?m)^\w{12} +check +- +done `).MatchString(out) {
		t.Errorf("list: exit %d\n%s", code, out)
	}
}

func TestServerThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	f.join("n1", "n2", "n3", "n4", "n5", "n6")
	for _, n := range f.nodes {
		n.took.Store(int64(300 * time.Millisecond))
	}
	waiting := f.waitFor("fleet", "order", "pairs", "--busy", "any", "--wait")
	id := waiting.order()
	_, every, _ := f.busbar("fleet", "order", "pairs", "--every", "1h", "--from", "2026-01-01T00:00:00Z")
	order := func(id string) (got fleet.OrderReply) {
		cl := client.New(client.Options{Folder: client.Folder{Data: f.data}, Server: "http://" + f.page})
		if err := cl.Call(t.Context(), "GET", "/api/fleet/orders/"+id, nil, &got); err != nil {
			t.Log(err)
		}
		return got
	}
	eventually.Holds(f.t, "some pairs are measured", func() bool { return order(id).Measured >= 3 })
	f.kill()
	eventually.Holds(f.t, "who waits misses the server", func() bool { return waiting.says("no answer: ") })
	f.start()
	eventually.Holds(f.t, "the order goes on to its end", func() bool { got := order(id); return got.Final() })
	if got := order(id); got.State != fleet.Done || got.Measured != 15 || got.Sweep != 1 {
		t.Errorf("%+v", got)
	}
	if got := order(strings.TrimSpace(every)); got.State != fleet.Waiting || got.Next.IsZero() || got.Next.Minute() != 0 {
		t.Errorf("the schedule: %+v", got)
	}
	if code := waiting.end(); code != exitDone || !waiting.says("no answer: ", "the server answers again") ||
		!strings.Contains(waiting.out.String(), "15 of 15") {
		t.Errorf("who waited over the restart: exit %d\n%s%s", code, &waiting.errs, &waiting.out)
	}
	done := int64(0)
	for _, n := range f.nodes {
		done += n.done.Load()
	}
	if done > 30+6 {
		t.Errorf("nodes did %d parts for 15 pairs", done)
	}
	// Cancelling stops what runs.
	for _, n := range f.nodes {
		n.took.Store(int64(time.Minute))
	}
	waiting = f.waitFor("fleet", "order", "pairs", "--busy", "any", "--max-time", "2m", "--wait")
	id = waiting.order()
	eventually.Holds(f.t, "it runs", func() bool { return order(id).State == fleet.Running })
	waiting.stop(interrupted{syscall.SIGINT})
	if code := waiting.end(); code != 130 || !waiting.says(id+": it goes on; ", "busbar fleet order cancel "+id) ||
		order(id).State != fleet.Running {
		t.Errorf("who was interrupted: exit %d\n%s", code, &waiting.errs)
	}
	if code, _, errs := f.busbar("fleet", "order", "cancel", id); code != exitDone {
		t.Error(errs)
	}
	eventually.Holds(f.t, "nobody measures any more", func() bool {
		_, out, _ := f.busbar("fleet", "nodes", "--json")
		return !strings.Contains(out, `"doing"`)
	})
}

func TestClientRefuses(t *testing.T) {
	t.Setenv("BUSBAR_TOKEN", "")
	for _, c := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{"fleet", "nodes", "--data", t.TempDir()}, exitCannot, "no token"},
		{[]string{"fleet", "nodes", "--server", "ftp://x"}, exitBad, "--server"},
		{[]string{"fleet", "order", "pairs", "--every", "1s"}, exitBad, "at least"},
		{[]string{"fleet", "order", "pairs", "--from", "noon"}, exitBad, "--from"},
		{[]string{"fleet", "order", "pairs", "--nodes", "a"}, exitBad, "2 to"},
		{[]string{"fleet", "order", "pairs", "--nodes", "a[1-"}, exitBad, "--nodes"},
		{[]string{"fleet", "order", "pairs", "--every", "1h", "--wait"}, exitBad, "--wait"},
		{[]string{"fleet", "order", "pairs", "--busy", "much"}, exitBad, "--busy"},
		{[]string{"fleet", "order", "collective", "--op", "x"}, exitBad, "--op"},
		{[]string{"fleet", "order", "check"}, exitBad, "--nodes"},
		{[]string{"serve", "--webhook", "file:///etc/passwd"}, exitBad, "expected an address"},
		{[]string{"serve", "--keep", "1s"}, exitBad, "--keep"},
		{[]string{"serve", "--nats-creds", "x"}, exitBad, "--nats"},
		{[]string{"serve", "token", "node", "a b"}, exitBad, "character"},
		{[]string{"serve", "--bus-listen", "0.0.0.0:0"}, exitBad, "--bus-plain"},
	} {
		var errs bytes.Buffer
		args := c.args
		if args[0] == "serve" {
			args = append(args, "--data", t.TempDir())
			if args[1] != "token" {
				if !slices.Contains(args, "--bus-listen") { // which takes one value
					args = append(args, "--bus-listen", "127.0.0.1:0")
				}
				args = append(args, "--listen", "127.0.0.1:0")
			}
		}
		if code := run(t.Context(), strings.NewReader(""), &bytes.Buffer{}, &errs, args); code != c.code ||
			!strings.Contains(errs.String(), c.has) {
			t.Error(fmt.Sprint(c.args), code, errs.String())
		}
	}
}

// TestFleetTakesWhoMayCome tries every route of the fleet without a token, with a wrong one, and
// orders with one that may only read.
func TestFleetTakesWhoMayCome(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	code, reader, errs := f.busbar("serve", "token", "add", "reader", "--role", "read")
	if code != exitDone {
		t.Fatal(errs)
	}
	ask := func(x hub.Endpoint, token string) int {
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(x.Path)
		r, err := http.NewRequestWithContext(t.Context(), x.Method, "http://"+f.page+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, x := range hub.New(hub.Config{}).Endpoints() {
		none, wrong, may := ask(x, ""), ask(x, "wrong"), ask(x, strings.TrimSpace(reader))
		refused := wrong == http.StatusUnauthorized || wrong == http.StatusTooManyRequests
		if none != http.StatusUnauthorized || !refused || (may == http.StatusForbidden) != x.Orders ||
			may == http.StatusUnauthorized {
			t.Errorf("%s %s: %d without a token, %d with a wrong one, %d with one to read", x.Method, x.Path, none, wrong, may)
		}
	}
}

// TestSecondServer has two servers on one bus: what one is told, the other knows.
func TestSecondServer(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	f.join("n1", "n2", "n3")
	creds := filepath.Join(t.TempDir(), "hub.creds")
	keys, err := bus.OpenKeys(filepath.Join(f.data, "bus", "keys"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := keys.Hub()
	if err == nil {
		err = os.WriteFile(creds, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	page, data := freeport.Address(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		run(ctx, strings.NewReader(""), &bytes.Buffer{}, os.Stderr, []string{
			"serve", "-q", "--data", data, "--listen", page, "--nats", "nats://" + f.bus, "--nats-creds", creds, "--no-agent",
		})
	})
	other := func(args ...string) (int, string) {
		var out bytes.Buffer
		return run(ctx, strings.NewReader(""), &out, &bytes.Buffer{},
			append(args, "--data", data, "--server", "http://"+page)), out.String()
	}
	eventually.Holds(f.t, "the second server knows the nodes", func() bool {
		code, out := other("fleet", "nodes", "--json")
		return code == exitDone && strings.Count(out, `"state": "up"`) == 3
	})
	code, out := other("fleet", "order", "pairs", "--wait", "--busy", "any", "--json") // the first one carries it out
	if code != exitDone || !strings.Contains(out, `"parts_good": 3`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if _, out, _ := f.busbar("fleet", "order", "list", "--all"); !strings.Contains(out, "3 of 3") {
		t.Errorf("the first server: %s", out)
	}
	// A node's credentials are no server's.
	node := filepath.Join(t.TempDir(), "node.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "n9", "-o", node); code != exitDone {
		t.Fatal(errs)
	}
	late, cancel := context.WithTimeout(ctx, eventually.Limit)
	defer cancel()
	var errs bytes.Buffer
	code = run(late, strings.NewReader(""), &bytes.Buffer{}, &errs, []string{
		"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--nats", "nats://" + f.bus, "--nats-creds", node,
	})
	if code != exitCannot || !strings.Contains(errs.String(), "lack rights") {
		t.Errorf("a node's credentials for a server: exit %d, %s", code, errs.String())
	}
}
