//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// TestMain makes the test binary a rank as well, for tests that end one.
func TestMain(m *testing.M) {
	if rank := os.Getenv("ENGINE_TEST_RANK"); rank != "" {
		os.Exit(beRank(rank))
	}
	os.Exit(m.Run())
}

// beRank joins and runs all-reduces until something ends it. It says what on standard output.
func beRank(text string) int {
	rank, _ := strconv.Atoi(text)
	size, _ := strconv.Atoi(os.Getenv("ENGINE_TEST_SIZE"))
	timeout, _ := time.ParseDuration(os.Getenv("ENGINE_TEST_TIMEOUT"))
	g, err := engine.Join(context.Background(), engine.Config{
		Rank: rank, Size: size, Meet: os.Getenv("ENGINE_TEST_MEET"), Secret: "k", Bind: "127.0.0.1", Timeout: timeout,
		Transport: engine.Transport(os.Getenv("ENGINE_TEST_TRANSPORT")),
	})
	if err != nil {
		fmt.Println("join:", err)
		return 1
	}
	defer g.Close()
	fmt.Println("joined")
	memory, err := g.Alloc(4 << 20)
	if err != nil {
		fmt.Println("memory:", err)
		return 1
	}
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	for k := 0; ; k++ {
		if os.Getenv("ENGINE_TEST_LEAVER") == text && k == 20+len(os.Getenv("ENGINE_TEST_ODD")) {
			g.Close()
			time.Sleep(time.Minute) // the process lives on, so that nobody hears of its death instead, until it is killed
			return 0
		}
		op := coll.Op{Kind: coll.AllReduce, Bytes: 4 << rng.IntN(20)}
		if os.Getenv("ENGINE_TEST_LEAVER") != "" {
			op.Bytes = 64 << (k % 2 * 14) // calls that have run before: on a page, and in shared memory
		}
		s, err := engine.Pick(op, size, g.Transport())
		if err != nil {
			fmt.Println("pick:", err)
			return 1
		}
		if os.Getenv("ENGINE_TEST_LEAVER") != "" {
			s = nil // such calls are prepared once
		}
		buf := memory[:op.Bytes]
		if _, err = g.Run(context.Background(), s, op, engine.Buffers{Send: buf, Recv: buf}); err == nil {
			continue
		}
		var peer *engine.PeerError
		if errors.As(err, &peer) {
			fmt.Printf("peer %d %s | %v\n", peer.Rank, peer.Cause, err)
		} else {
			fmt.Println("error:", err)
		}
		if _, err := g.Run(context.Background(), s, op, engine.Buffers{Send: buf, Recv: buf}); err == nil {
			fmt.Println("a failed group ran another call")
		}
		return 3
	}
}

// child is a rank in a process of its own.
type child struct {
	cmd   *exec.Cmd
	lines chan string
}

func startChild(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, lines: make(chan string, 100)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		close(c.lines)
	}()
	return c
}

func startRanks(t *testing.T, n int, timeout time.Duration, how engine.Transport) []*child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	meet := filepath.Join(t.TempDir(), "meet")
	var all []*child
	for r := range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "ENGINE_TEST_RANK="+strconv.Itoa(r), "ENGINE_TEST_SIZE="+strconv.Itoa(n),
			"ENGINE_TEST_MEET="+meet, "ENGINE_TEST_TIMEOUT="+timeout.String(), "ENGINE_TEST_TRANSPORT="+string(how))
		cmd.Stderr = os.Stderr
		all = append(all, startChild(t, cmd))
	}
	t.Cleanup(func() {
		for _, c := range all {
			c.cmd.Process.Kill()
			c.cmd.Process.Signal(syscall.SIGCONT)
			c.cmd.Wait()
		}
	})
	for r, c := range all {
		if line := <-c.lines; line != "joined" {
			t.Fatalf("rank %d: %s", r, line)
		}
	}
	return all
}

// expect waits for the survivors' words about a rank. The limit is there so that a hang fails
// the test; nothing depends on the time otherwise.
func expect(t *testing.T, all []*child, victim int, causes ...engine.Cause) {
	t.Helper()
	limit := time.After(eventually.Limit)
	for r, c := range all {
		if r == victim {
			continue
		}
		select {
		case line := <-c.lines:
			ok := false
			for _, cause := range causes {
				ok = ok || strings.HasPrefix(line, fmt.Sprintf("peer %d %s |", victim, cause))
			}
			if !ok {
				t.Errorf("rank %d says %q of the end of rank %d", r, line, victim)
			}
			if !strings.Contains(line, "channel") && !strings.Contains(line, "waiting for") &&
				!strings.Contains(line, "last sends") {
				t.Logf("rank %d was between calls: %s", r, line)
			}
		case <-limit:
			t.Fatalf("rank %d has not noticed the end of rank %d", r, victim)
		}
		if line, more := <-c.lines; more {
			t.Errorf("rank %d goes on: %s", r, line)
		}
	}
}

// killings is how often a rank is killed: a few times, or as often as BUSBAR_KILLS says.
func killings(few int) int {
	if n, err := strconv.Atoi(os.Getenv("BUSBAR_KILLS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return min(few, 2)
	}
	return few
}

var ways = []engine.Transport{engine.TCP, engine.Auto, engine.Shm}

func TestKill(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, uint64(time.Now().UnixNano())))
	for k := range killings(20) {
		all := startRanks(t, 8, 20*time.Second, ways[k%3])
		victim := rng.IntN(8)
		time.Sleep(time.Duration(rng.IntN(300_000)) * time.Microsecond)
		all[victim].cmd.Process.Kill()
		expect(t, all, victim, engine.Died)
		if t.Failed() {
			return
		}
	}
}

// TestLeave: a rank that closes its group while others wait for it is named, also by those who
// wait for nothing but a word on its page.
func TestLeave(t *testing.T) {
	for _, how := range []engine.Transport{engine.Shm, engine.TCP} {
		for _, leaver := range []int{0, 2} {
			t.Setenv("ENGINE_TEST_LEAVER", strconv.Itoa(leaver))
			for _, odd := range []string{"", "1"} {
				t.Setenv("ENGINE_TEST_ODD", odd)
				expect(t, startRanks(t, 3, 4*time.Second, how), leaver, engine.Left)
			}
		}
	}
}

func TestHang(t *testing.T) {
	for _, victim := range []int{0, 3} {
		all := startRanks(t, 4, 4*time.Second, engine.TCP)
		all[victim].cmd.Process.Signal(syscall.SIGSTOP)
		expect(t, all, victim, engine.Silent)
	}
}
