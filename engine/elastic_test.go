//go:build unix

package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

// share is what the member with a process number contributes to element i of a step.
func share(pid, step, i int) int64 { return int64(pid)*1000003 + int64(step)*7919 + int64(i%251) }

// actor is a member of an elastic job in a process of its own. It runs operations until its
// standard input ends on some member, and checks each against the members that the view names.
type actor struct {
	e       *engine.Elastic
	memory  []int64
	step    int
	history uint64 // of all results and the members they belong to
	stop    chan struct{}
}

// beElastic is the life of an actor. What it says on standard output ends with a line that is
// the same on all that lived through the same.
func beElastic(text string) int {
	rank, _ := strconv.Atoi(text)
	size, _ := strconv.Atoi(os.Getenv("ENGINE_TEST_SIZE"))
	least, _ := strconv.Atoi(os.Getenv("ENGINE_TEST_MIN"))
	timeout, _ := time.ParseDuration(os.Getenv("ENGINE_TEST_TIMEOUT"))
	cfg := engine.Config{
		Rank: rank, Size: size, MinSize: least, Meet: os.Getenv("ENGINE_TEST_MEET"), Secret: "k", Bind: os.Getenv("ENGINE_TEST_BIND"),
		Timeout: timeout, Transport: engine.Transport(os.Getenv("ENGINE_TEST_TRANSPORT")),
	}
	if ca := os.Getenv("ENGINE_TEST_TLS"); ca != "" {
		var err error
		if cfg.TLS, err = engine.LoadTLS(ca+"/rank.pem", ca+"/rank.key", ca+"/ca.pem"); err != nil {
			fmt.Println("tls:", err)
			return 1
		}
	}
	e, err := engine.JoinElastic(context.Background(), cfg)
	if err != nil {
		fmt.Println("join:", err)
		return 1
	}
	defer e.Close()
	fmt.Println("joined")
	a := &actor{e: e, stop: make(chan struct{})}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(a.stop)
	}()
	b, err := e.Alloc(2 << 20)
	if err != nil {
		fmt.Println("memory:", err)
		return 1
	}
	a.memory = unsafe.Slice((*int64)(unsafe.Pointer(&b[0])), len(b)/8)
	if rank < 0 {
		err = a.meet()
	}
	if err == nil {
		err = a.play()
	}
	if err == nil {
		err = e.Finish(context.Background())
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	v := e.View()
	fmt.Printf("end step %d size %d epoch %d history %x\n", a.step, v.Size, v.Epoch, a.history)
	return 0
}

// meet tells newcomers which step is next.
func (a *actor) meet() error {
	x := []int64{int64(a.step)}
	_, _, err := a.e.Run(context.Background(), engine.Work{Op: coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Reduce: coll.Max, Bytes: 8}, Buffers: engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)}})
	a.step = int(x[0])
	return err
}

func (a *actor) play() error {
	ctx := context.Background()
	for {
		joined, err := a.e.Admit(ctx)
		if err != nil {
			return err
		}
		if len(joined) > 0 {
			if err := a.meet(); err != nil {
				return err
			}
			continue // to where newcomers begin
		}
		stop := false
		if a.step++; a.step%5 == 0 {
			err = a.gather(ctx)
		} else {
			stop, err = a.sum(ctx)
		}
		if err != nil || stop {
			return err
		}
	}
}

// sum adds vectors, in place or not. The first element counts those who want to stop.
func (a *actor) sum(ctx context.Context) (stop bool, err error) {
	rng := rand.New(rand.NewPCG(7, uint64(a.step)))
	n := 1 + rng.IntN(1<<rng.IntN(17))
	send, recv := a.memory[:n], a.memory[:n]
	if a.step%2 == 0 {
		recv = a.memory[n : 2*n]
	}
	for i := range send {
		send[i] = share(os.Getpid(), a.step, i)
	}
	send[0] = 0
	select {
	case <-a.stop:
		send[0] = 1
	default:
	}
	_, v, err := a.e.Run(ctx, engine.Work{Op: coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: unit.Bytes(8 * n)}, Buffers: engine.Buffers{Send: engine.Bytes(send), Recv: engine.Bytes(recv)}})
	if err != nil {
		return false, err
	}
	for i := 1; i < n; i++ {
		var want int64
		for _, m := range v.Members {
			want += share(m.Pid, a.step, i)
		}
		if recv[i] != want {
			return false, fmt.Errorf("step %d of epoch %d with %d members: element %d of %d is %d; want %d", a.step, v.Epoch, v.Size, i, n, recv[i], want)
		}
	}
	a.note(v, recv)
	return recv[0] > 0, nil
}

// gather collects a block of each member, which lies elsewhere when the members are others.
func (a *actor) gather(ctx context.Context) error {
	const block = 1000
	var recv []int64
	_, v, err := a.e.RunWith(ctx, func(v engine.View) (engine.Work, error) {
		recv = a.memory[:v.Size*block]
		own := recv[v.Rank*block : (v.Rank+1)*block]
		for i := range own {
			own[i] = share(os.Getpid(), a.step, i)
		}
		return engine.Work{Op: coll.Op{Kind: coll.AllGather, Type: coll.Int64, Bytes: unit.Bytes(8 * len(recv))}, Buffers: engine.Buffers{Send: engine.Bytes(own), Recv: engine.Bytes(recv)}}, nil
	})
	if err != nil {
		return err
	}
	for i, x := range recv {
		if want := share(v.Members[i/block].Pid, a.step, i%block); x != want {
			return fmt.Errorf("step %d of epoch %d with %d members: element %d of the gathered is %d; want %d", a.step, v.Epoch, v.Size, i, x, want)
		}
	}
	a.note(v, recv)
	return nil
}

// note adds a result to the history.
func (a *actor) note(v engine.View, result []int64) {
	h := fnv.New64a()
	binary.Write(h, binary.LittleEndian, []uint64{a.history, uint64(a.step), uint64(v.Epoch), uint64(v.Size)})
	h.Write(engine.Bytes(result))
	a.history = h.Sum64()
}

// cast is the actors of a test.
type cast struct {
	t     *testing.T
	env   []string
	all   []*child
	input []io.WriteCloser
	meet  string
}

func newCast(t *testing.T, n int, timeout time.Duration, how engine.Transport, env ...string) *cast {
	t.Helper()
	c := emptyCast(t, n, timeout, how, env...)
	for r := range n {
		c.start(r)
	}
	for r := range n {
		c.expect(r, "joined")
	}
	return c
}

func emptyCast(t *testing.T, n int, timeout time.Duration, how engine.Transport, env ...string) *cast {
	c := &cast{t: t, meet: filepath.Join(t.TempDir(), "meet")}
	c.env = append(append(os.Environ(), "ENGINE_TEST_SIZE="+strconv.Itoa(n), "ENGINE_TEST_MEET="+c.meet, "ENGINE_TEST_TIMEOUT="+timeout.String(), "ENGINE_TEST_TRANSPORT="+string(how), "ENGINE_TEST_BIND=127.0.0.1"), env...)
	t.Cleanup(c.end)
	return c
}

func (c *cast) start(rank int) int {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.begin(exec.Command(self), rank)
}

// begin starts an actor by a command, which may put it on another host.
func (c *cast) begin(cmd *exec.Cmd, rank int, env ...string) int {
	c.t.Helper()
	cmd.Env = append(append(c.env, "ENGINE_TEST_ELASTIC="+strconv.Itoa(rank)), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.all = append(c.all, startChild(c.t, cmd))
	c.input = append(c.input, in)
	return len(c.all) - 1
}

func (c *cast) end() {
	for i, x := range c.all {
		c.input[i].Close()
		x.cmd.Process.Kill()
		x.cmd.Process.Signal(syscall.SIGCONT)
		x.cmd.Wait()
	}
}

// line is what an actor says next. The limit is there so that a hang fails the test.
func (c *cast) line(i int) string {
	c.t.Helper()
	select {
	case line := <-c.all[i].lines:
		return line
	case <-time.After(eventually.Limit):
		for _, x := range c.all { // to see where they hang
			x.cmd.Process.Signal(syscall.SIGQUIT)
		}
		for _, x := range c.all { // until they have said it
			for range x.lines {
			}
		}
		c.t.Fatalf("actor %d hangs", i)
		return ""
	}
}

func (c *cast) expect(i int, want string) {
	c.t.Helper()
	if line := c.line(i); !strings.HasPrefix(line, want) {
		c.t.Fatalf("actor %d says %q; want %q", i, line, want)
	}
}

// finish lets the job end, and checks that all but the lost say the same, and end well.
func (c *cast) finish(size int, lost ...int) string {
	c.t.Helper()
	gone := map[int]bool{}
	for _, i := range lost {
		gone[i] = true
	}
	for i := range c.all {
		if !gone[i] {
			c.input[i].Close()
		}
	}
	first := ""
	for i := range c.all {
		if gone[i] {
			continue
		}
		line := c.line(i)
		if first == "" {
			first = line
		}
		if !strings.HasPrefix(line, "end ") || line != first {
			c.t.Errorf("actor %d says %q; another says %q", i, line, first)
		}
		if err := c.all[i].cmd.Wait(); err != nil {
			c.t.Errorf("actor %d: %v", i, err)
		}
	}
	if !strings.Contains(first, fmt.Sprintf(" size %d ", size)) {
		c.t.Errorf("%q; want %d members", first, size)
	}
	if _, err := os.Stat(c.meet); err == nil {
		c.t.Errorf("the file in which they met is still there")
	}
	return first
}

// killings is how often a rank is killed: a few times, or as often as BUSBAR_KILLS says.
func killings(t *testing.T, few int) int {
	if n, err := strconv.Atoi(os.Getenv("BUSBAR_KILLS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return min(few, 2)
	}
	return few
}

var ways = []engine.Transport{engine.TCP, engine.Auto, engine.Shm}

// TestElasticKill ends one of eight ranks at some moment; the other seven go on.
func TestElasticKill(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, uint64(time.Now().UnixNano())))
	for k := range killings(t, 5) {
		c := newCast(t, 8, 20*time.Second, ways[k%3])
		victim := rng.IntN(8)
		if k == 0 {
			victim = 0
		}
		pause(rng, 200)
		c.all[victim].cmd.Process.Kill()
		pause(rng, 100)
		line := c.finish(7, victim)
		if t.Failed() {
			t.Fatalf("killing %d of rank %d over %s", k, victim, ways[k%3])
		}
		if testing.Verbose() {
			t.Logf("rank %d over %s: %s", victim, ways[k%3], line)
		}
		c.end()
	}
}
