package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/internal/test/hostile"
)

// TestAttack has a server of 2 GB of addresses take hostile documents by a read token and by a node's credentials,
// beside honest nodes and an honest reader. BUSBAR_ATTACK says how many; make attack sends 10,000.
func TestAttack(t *testing.T) {
	t.Parallel()
	var table chan hostile.Doc // each of the known attacks once, where nobody says how many
	count, _ := strconv.Atoi(os.Getenv("BUSBAR_ATTACK"))
	if count == 0 {
		if count = 40; testing.Short() {
			t.Skip("takes a server and a while")
		}
		list := hostile.All()
		table = make(chan hostile.Doc, len(list))
		for _, d := range list {
			table <- d
		}
		close(table)
	}
	f := boundedServer(t)
	f.join("gpu01", "gpu02", "gpu03")
	a := &attack{servedFleet: f, evil: f.token("evil"), good: f.token("good"), watch: f.token("watch")}
	creds := filepath.Join(t.TempDir(), "evil.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "evil", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	victim := f.process("victim")
	began := time.Now()
	var wg sync.WaitGroup
	for w := range 4 {
		r := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() { a.upload(r, documents(r, count/4, table)) })
	}
	wg.Go(func() { a.publish(creds, count/2) })
	var judged time.Duration
	wg.Go(func() { judged = a.kill(victim) })
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	go a.beat(creds, over)
	times := a.honest(over)
	slices.Sort(times)
	peak := memoryOf(f.cmd.Process.Pid, "VmHWM:")
	p99 := times[len(times)*99/100]
	for _, sort := range hostile.Sorts {
		if a.sorts[sort] == 0 {
			t.Errorf("no attack of the sort %s was sent", sort)
		}
	}
	t.Logf("%d uploads of the sorts %v (answers %v), %d maps and %d beats of 900 jobs in %v", a.sent.Load(), a.sorts,
		a.answers(), a.maps.Load(), a.beats.Load(), time.Since(began).Round(time.Second))
	t.Logf("bombs %d, peak memory %d MB, honest requests %d: p50 %v, p99 %v, worst %v; a killed agent is judged after %v",
		a.sent.Load(), peak>>10, len(times), times[len(times)/2].Round(time.Microsecond), p99.Round(time.Millisecond),
		times[len(times)-1].Round(time.Millisecond), judged.Round(time.Second))
	if os.Getenv("BUSBAR_ATTACK") != "" && (p99 > time.Second || peak > 400_000 || judged > 30*time.Second) {
		t.Error("want at most 400 MB, 1 s and 30 s")
	}
	code, out, errs := f.busbar("fleet", "nodes", "--json")
	if code != exitDone || strings.Count(out, `"state": "up"`) < 3 {
		t.Errorf("the honest nodes after it: exit %d\n%s%s", code, out, errs)
	}
	if _, out, _ := f.busbar("fleet", "nodes", "--bad"); strings.Contains(out, "gpu") {
		t.Errorf("an honest node is called bad: %s", out)
	}
}

// boundedServer is a server of 2 GB of addresses.
func boundedServer(t *testing.T) *servedFleet {
	t.Helper()
	f := &servedFleet{
		t: t, data: t.TempDir(), page: freeport.Address(t), bus: freeport.Address(t), nodes: map[fleet.Name]*testNode{},
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash, which bounds the server's memory here")
	}
	f.cmd = exec.Command(bash, "-c",
		`ulimit -v 2000000; exec -a busbar "$0" serve --no-agent --data "$1" --listen "$2" --bus-listen "$3"`, self, f.data,
		f.page, f.bus)
	f.cmd.Stderr = os.Stderr
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.kill)
	eventually.Holds(t, "the server answers",
		func() bool { code, _, _ := f.busbar("fleet", "nodes", "--json"); return code == exitDone })
	return f
}

// TestBombs sends the bombs of compression to the addresses that unpack, in turn (each to every one where
// BUSBAR_ATTACK is set: they unpack alike, and a bomb takes a second), and asks a small question after each: it is
// answered, and the memory is given back.
func TestBombs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a server and a while")
	}
	a := &attack{servedFleet: boundedServer(t)}
	a.evil, a.good = a.token("evil"), a.token("good")
	pid, r := a.cmd.Process.Pid, rand.New(rand.NewPCG(1, 7))
	for i, d := range hostile.All() {
		if s := d.Sort(); s != "bomb" && s != "archive" {
			continue
		}
		addresses := []string{"hang", "doctor", "files"}
		if os.Getenv("BUSBAR_ATTACK") == "" {
			addresses = addresses[i%3 : i%3+1]
		}
		for _, to := range addresses {
			var code int
			if to == "files" {
				code = a.describe(r, d)
			} else {
				code = a.examine(to, d)
			}
			if code == 0 || code == http.StatusInternalServerError {
				t.Fatalf("%s to %s: answered with %d", d.Name, to, code)
			}
			code, body := a.ask(a.good, "GET", fmt.Sprintf("/api/predict?c=dgx-h100:4&size=%dK", i+1), nil)
			if code != http.StatusOK {
				t.Errorf("a small question after %s to %s: %d %.200s", d.Name, to, code, body)
			}
		}
	}
	if peak := memoryOf(pid, "VmHWM:"); peak > 400_000 {
		t.Errorf("peak memory %d MB; want at most 400", peak>>10)
	}
	eventually.Holds(t, "the memory is given back", func() bool { return memoryOf(pid, "VmRSS:") < 128_000 })
	t.Logf("peak memory %d MB, then %d MB", memoryOf(pid, "VmHWM:")>>10, memoryOf(pid, "VmRSS:")>>10)
}

// documents are those of a table, which others take from too, or so many random ones.
func documents(r *rand.Rand, n int, table <-chan hostile.Doc) func() (hostile.Doc, bool) {
	return func() (hostile.Doc, bool) {
		if table != nil {
			d, more := <-table
			return d, more
		}
		n--
		if n < 0 {
			return hostile.Doc{}, false
		}
		return hostile.Random(r), true
	}
}

// attack is a server under attack.
type attack struct {
	*servedFleet
	evil, good, watch string // tokens
	sent, maps        atomic.Int64
	beats             atomic.Int64
	mu                sync.Mutex // guards following
	codes             map[int]int
	sorts             map[string]int
}

// token makes one that may read.
func (f *servedFleet) token(name string) string {
	f.t.Helper()
	code, out, errs := f.busbar("serve", "token", "add", name, "--json")
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(out), &made); code != exitDone || err != nil || made.Token == "" {
		f.t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	return made.Token
}

func (a *attack) ask(token, method, path string, body io.Reader) (int, []byte) {
	return a.askAs(token, method, path, "", body)
}

func (a *attack) askAs(token, method, path, content string, body io.Reader) (int, []byte) {
	r, err := http.NewRequestWithContext(a.t.Context(), method, "http://"+a.page+path, body)
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if content != "" {
		r.Header.Set("Content-Type", content)
	}
	res, err := http.DefaultClient.Do(r)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return http.StatusServiceUnavailable, nil // refused before all was sent: the answer went with the connection
	}
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return res.StatusCode, data
}

// upload sends documents and asks about each.
func (a *attack) upload(r *rand.Rand, docs func() (hostile.Doc, bool)) {
	for d, more := docs(); more; d, more = docs() {
		code := a.askAbout(r, d)
		a.sent.Add(1)
		a.mu.Lock()
		if a.codes == nil {
			a.codes, a.sorts = map[int]int{}, map[string]int{}
		}
		a.codes[code]++
		a.sorts[d.Sort()]++
		a.mu.Unlock()
		if code == 0 || code == http.StatusInternalServerError {
			a.t.Errorf("%s (%d bytes): answered with %d", d.Name, len(d.Data), code)
		}
		if code == http.StatusTooManyRequests {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// askAbout sends a document and asks a question about it; what is packed and logs go to the doctor and to hang too.
func (a *attack) askAbout(r *rand.Rand, d hostile.Doc) (code int) {
	switch d.Sort() {
	case "log", "archive":
		return a.examine([]string{"doctor", "hang"}[r.IntN(2)], d)
	case "bomb":
		if to := []string{"doctor", "hang", ""}[r.IntN(3)]; to != "" {
			return a.examine(to, d)
		}
	}
	return a.describe(r, d)
}

// describe sends a document as the description of a cluster or a model.
func (a *attack) describe(r *rand.Rand, d hostile.Doc) int {
	code, body := a.ask(a.evil, "POST", "/api/files?name="+d.Name, bytes.NewReader(d.Data))
	var kept struct{ ID string }
	if code == http.StatusOK && json.Unmarshal(body, &kept) == nil {
		c := url.QueryEscape(kept.ID)
		path := []string{
			"/api/map?c=" + c, "/api/map?audit=1&c=" + c, "/api/predict?c=" + c, "/api/scene?c=" + c,
			"/api/step?c=dgx-h100:2&m=" + c,
		}[r.IntN(5)]
		code, _ = a.ask(a.evil, "GET", path, nil)
	}
	return code
}

// examine sends a document with the question.
func (a *attack) examine(question string, d hostile.Doc) (code int) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if part, err := w.CreateFormFile("file", d.Name); err == nil {
		_, _ = part.Write(d.Data)
	}
	_ = w.Close()
	code, _ = a.askAs(a.evil, "POST", "/api/"+question, w.FormDataContentType(), &form)
	return code
}

func (a *attack) answers() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.codes)
}

// publish sends maps with a node's credentials.
func (a *attack) publish(creds string, n int) {
	b, err := bus.Connect(bus.Config{URLs: []string{"nats://" + a.bus}, Creds: creds, Node: "evil"})
	if err != nil {
		a.t.Error(err)
		return
	}
	defer b.Close()
	p := b.Publisher()
	r := rand.New(rand.NewPCG(9, 9))
	for i := range n {
		m := hostile.Map(1 + r.IntN(1000))
		err := p.Publish(a.t.Context(), &fleet.Event{
			Node: "evil", At: time.Now(), Kind: fleet.KindJoined,
			Joined: &fleet.Joined{Meet: fmt.Sprint("127.0.0.1:", 1+i%60000), Map: m},
		})
		if err == nil {
			a.maps.Add(1)
		}
	}
}

// beat sends heartbeats with 900 jobs of one member each, until it is over.
func (a *attack) beat(creds string, over <-chan struct{}) {
	b, err := bus.Connect(bus.Config{URLs: []string{"nats://" + a.bus}, Creds: creds, Node: "evil"})
	if err != nil {
		a.t.Error(err)
		return
	}
	defer b.Close()
	for {
		w := rates.Window{From: time.Now().Add(-2 * time.Second), To: time.Now()}
		for i := range 900 {
			w.Members = append(w.Members, rates.Member{
				Comm: fmt.Sprintf("%x", i), Ranks: 2, Host: "evil", PID: i + 1, Job: fmt.Sprint(i), Global: -1, Local: -1,
			})
			w.Parts = append(w.Parts, rates.Part{
				Member: i, Op: "all_reduce", Class: 20, Count: 1, Bytes: 1 << 20,
				Samples: []rates.Sample{{Seq: 1, At: w.To.UnixMicro(), Us: 9}},
			})
		}
		if data, err := w.Pack(); err != nil || len(data) > 16<<10 {
			a.t.Errorf("a window of %d bytes: %v", len(data), err)
		} else if b.Beat(&fleet.Beat{Node: "evil", At: time.Now(), Agent: "evil", Jobs: data}) == nil {
			a.beats.Add(1)
		}
		select {
		case <-over:
			return
		case <-time.After(2 * time.Second):
		}
	}
}

// process starts an agent that can be killed, and waits until it is up.
func (f *servedFleet) process(name fleet.Name) *exec.Cmd {
	f.t.Helper()
	creds := filepath.Join(f.t.TempDir(), "node.creds")
	if code, _, errs := f.busbar("serve", "token", "node", string(name), "-o", creds); code != exitDone {
		f.t.Fatal(errs)
	}
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(self, "agent", "-q", "--join", "nats://"+f.bus, "--creds", creds, "--name", string(name), "--data",
		f.t.TempDir(), "--bind", "127.0.0.1")
	cmd.Args[0] = "busbar"
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	f.allUp(len(f.nodes) + 1)
	return cmd
}

// kill kills an agent once the attack runs, and returns how long it takes until a finding says that it is unreachable.
func (a *attack) kill(victim *exec.Cmd) time.Duration {
	for a.beats.Load() < 2 {
		time.Sleep(50 * time.Millisecond)
	}
	killed := time.Now()
	if err := victim.Process.Kill(); err != nil {
		a.t.Error(err)
	}
	unreachable := func(n fleet.NodeState) bool {
		return n.Name == "victim" && n.State == fleet.NodeUnreachable && !n.UnreachableSince.IsZero()
	}
	for time.Since(killed) < eventually.Limit {
		var nodes fleet.NodesReply
		_, body := a.ask(a.watch, "GET", "/api/fleet/nodes", nil)
		if json.Unmarshal(body, &nodes) == nil && slices.ContainsFunc(nodes.Nodes, unreachable) {
			return time.Since(killed)
		}
		time.Sleep(500 * time.Millisecond) // an address has so many requests, and honest ones come from the same
	}
	a.t.Error("nothing is said about an agent that was killed")
	return time.Since(killed)
}

// honest asks as a person does, until it is over, and returns how long each took.
func (a *attack) honest(over <-chan struct{}) (times []time.Duration) {
	told := time.Now()
	for i := 0; ; i++ {
		if time.Since(told) > time.Minute { // a long attack tells how far it is
			told = time.Now()
			so := slices.Sorted(slices.Values(times))
			a.t.Logf("so far %d uploads (answers %v) and %d maps; peak memory %d MB; %d honest requests, p99 %v", a.sent.Load(),
				a.answers(), a.maps.Load(),
				memoryOf(a.cmd.Process.Pid, "VmHWM:")>>10, len(so), so[len(so)*99/100].Round(time.Millisecond))
		}
		select {
		case <-over:
			if i > 50 {
				return times
			}
		case <-time.After(40 * time.Millisecond):
		}
		began := time.Now()
		path := []string{"/api/me", "/api/fleet/nodes", "/api/predict?c=dgx-h100:4&size=1G", "/healthz"}[i%4]
		if code, body := a.ask(a.good, "GET", path, nil); code != http.StatusOK {
			a.t.Errorf("an honest %s: %d %.200s", path, code, body)
			if code == 0 {
				return append(times, time.Hour)
			}
		}
		times = append(times, time.Since(began))
	}
}

// memoryOf is what the kernel says of a process's memory, in kB; 0 unknown.
func memoryOf(pid int, what string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == what {
			kb, _ := strconv.Atoi(f[1])
			return kb
		}
	}
	return 0
}

// TestServerKeepsItsMemory: a server knows what memory it may use, and refuses questions that do not fit.
func TestServerKeepsItsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("a server that collects all the time")
	}
	f := &servedFleet{
		t: t, data: t.TempDir(), page: freeport.Address(t), bus: freeport.Address(t), nodes: map[fleet.Name]*testNode{},
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.cmd = exec.Command(self, "serve", "--no-agent", "--data", f.data, "--listen", f.page, "--bus-listen", f.bus)
	f.cmd.Args[0] = "busbar"
	f.cmd.Env = append(os.Environ(), "GOMEMLIMIT=1MiB") // less than it has already
	f.cmd.Stderr = os.Stderr
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.kill)
	a := &attack{servedFleet: f}
	eventually.Holds(t, "the server answers",
		func() bool { code, _ := a.ask("", "GET", "/healthz", nil); return code == http.StatusOK })
	a.good = f.token("good")
	eventually.Holds(t, "a question is refused", func() bool {
		code, _ := a.ask(a.good, "GET", "/api/predict?c=dgx-h100:4&size=1G", nil)
		return code == http.StatusServiceUnavailable
	})
}
