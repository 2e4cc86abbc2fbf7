package agent

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/osdep"
)

// TestMain makes the test binary what does parts as well.
func TestMain(m *testing.M) {
	switch a := os.Args; {
	case len(a) == 4 && a[1] == PartArgument:
		RunPart(a[2], "test", nil)
	case len(a) == 2 && a[1] == "faulty-part":
		RunPart("", "test", map[fleet.Transport]Measurer{fleet.TCP: faulty})
	}
	os.Exit(m.Run())
}

// faulty does what the part is called.
func faulty(ctx context.Context, p *fleet.Part, at func(int, int, string)) (*fleet.Measured, error) {
	switch p.ID {
	case "panics":
		var ranks []int
		ranks[p.Rank]++
	case "exits":
		os.Exit(7)
	case "is killed":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case "writes garbage":
		fmt.Println("{]")
		select {}
	case "writes without an end":
		for {
			at(0, 1, "further")
		}
	case "writes a long line":
		for {
			fmt.Print(strings.Repeat(" ", 1<<16))
		}
	case "tells of others":
		return &fleet.Measured{Pairs: []fleet.PairSample{{From: "a", To: "c", Rate: 1}}}, nil
	case "closes its output":
		os.Stdout.Close()
		select {}
	case "eats memory":
		for kept := [][]byte(nil); len(kept) < 1<<20; {
			kept = append(kept, make([]byte, 64<<20))
		}
	case "never ends", "is stopped":
		at(0, 1, strconv.Itoa(os.Getpid()))
		select {}
	case "says what it has":
		score, _ := os.ReadFile("/proc/self/oom_score_adj")
		limits, _ := os.ReadFile("/proc/self/limits")
		core := strings.Contains(string(limits), "Max core file size        0                    0 ")
		return nil, fmt.Errorf("score %s, no core %v, path %v, credentials %q", strings.TrimSpace(string(score)), core,
			os.Getenv("PATH") != "", os.Getenv("BUSBAR_CREDS"))
	}
	return &fleet.Measured{Pairs: []fleet.PairSample{{From: "a", To: "b", Rate: 1}}}, nil
}

// TestChildDies has processes that measure end in every way: each is a failure of its part, and the agent goes on.
func TestChildDies(t *testing.T) {
	t.Setenv("BUSBAR_CREDS", "secret")
	f := newFixture(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, _ := f.agent("a", func(c *Config) { c.Measure = Child{exe, "faulty-part"}.Measure })
	parts, pid := 0, 0
	do := func(id string, limit time.Duration) *fleet.Measured {
		p := pairPart(id, []fleet.Name{"a", "b"}, c.Meet)
		p.Caps.Time = limit
		f.until("a free node", func() bool { return f.ask("a", p).Begins })
		if parts++; id == "is stopped" {
			f.until("its number", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				pid, _ = strconv.Atoi(f.running["a"])
				return pid > 0
			})
			f.ask("a", fleet.Part{ID: id, Stop: true})
		}
		f.until("its outcome", func() bool { return len(f.sent("a", fleet.KindMeasured)) == parts })
		return f.sent("a", fleet.KindMeasured)[parts-1].Measured
	}
	const ended = "the measurement's process ended without a result: "
	for _, x := range []struct {
		id, want string
		linux    bool
	}{
		{id: "panics", want: ended + "exit status 2: crashed: panic: runtime error: index out of range [0] with length 0"},
		{id: "exits", want: ended + "exit status 7"},
		{id: "is killed", want: ended + "signal: killed"},
		{id: "writes garbage", want: `the measurement's process was ended: its line 1 is "{]": `},
		{id: "writes without an end", want: "the measurement's process was ended: its line 4097 is "},
		{id: "writes a long line", want: ended + "bufio.Scanner: token too long"},
		{id: "tells of others", want: "results of nodes that are not of the part"},
		{id: "closes its output", want: ended},
		{id: "eats memory", want: ended + "exit status ", linux: true},
		{id: "is stopped", want: "stopped"},
		{
			id: "says what it has", want: `score 1000, no core true, path true, credentials ""`, linux: true,
		},
	} {
		if x.linux && runtime.GOOS != "linux" {
			continue
		}
		if m := do(x.id, fleet.MaxTime); !strings.Contains(m.Failed, x.want) || m.Part != x.id || m.Order != "o" ||
			m.Peer != "" {
			t.Errorf("one that %s: %+v", x.id, m)
		}
	}
	if m := do("never ends", time.Second); !strings.Contains(m.Failed, "it took longer than its limit of 1s") {
		t.Errorf("one that never ends: %+v", m)
	}
	if !osdep.Gone(pid) {
		t.Errorf("one that is stopped: process %d is there", pid)
	}
	if m := do("is well", fleet.MaxTime); m.Failed != "" || len(m.Pairs) != 1 {
		t.Errorf("one that is well: %+v", m)
	}
}

// hostileLead is rank 0 of a part of two, which sends a verdict instead of measuring.
func hostileLead(l net.Listener, p *fleet.Part, verdict string) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	code := func(key string, parts ...string) string {
		h := hmac.New(sha256.New, []byte(key))
		for _, p := range parts {
			io.WriteString(h, p)
		}
		return string(h.Sum(nil))
	}
	mine := "busbar\x00\x06" + strings.Repeat("n", 32)
	io.WriteString(c, mine)
	answer := make([]byte, 8+2+4+4+4+8+32+sha256.Size)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	key := code(p.Secret, fmt.Sprintf("busbar job %q", p.ID))
	io.WriteString(c, "\x00"+code(key, "accept", string(answer[:len(answer)-sha256.Size]), mine))
	var head [5]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	member := make([]byte, binary.LittleEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, member); err != nil || !json.Valid(member) {
		return errors.Join(err, fmt.Errorf("member %q", member))
	}
	for _, note := range []struct {
		kind byte
		body string
	}{{2, fmt.Sprintf(`[{"rank":0,"host":"evil","pid":1,"addrs":[%q]},%s]`, l.Addr(), member)}, {5, verdict}} {
		c.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(note.body))), note.kind))
		io.WriteString(c, note.body)
	}
	_, _ = io.Copy(io.Discard, c) // until it has gone
	return nil
}

// TestHostileLead: a node that leads a part tells the others that rank -1 has died, which once made every agent of an
// order panic. Whatever it makes of the process that measures, the agent goes on.
func TestHostileLead(t *testing.T) {
	f := newFixture(t)
	f.agent("b", nil)
	var notes atomic.Int32
	for i, verdict := range []string{`{"rank":-1,"cause":"died"}`, `{"rank":9,"cause":"died"}`} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p := pairPart(fmt.Sprint("part", i), []fleet.Name{"evil", "b"}, l.Addr().String())
		p.Rank = 1
		go func() {
			if err := hostileLead(l, &p, verdict); err != nil {
				t.Errorf("%s was not sent: %v", verdict, err)
			}
			notes.Add(1)
		}()
		f.until("a free node", func() bool { return f.ask("b", p).Begins })
		f.until("its outcome", func() bool { return len(f.sent("b", fleet.KindMeasured)) == i+1 })
		if m := f.sent("b", fleet.KindMeasured)[i].Measured; m.Failed == "" || m.Part != p.ID {
			t.Errorf("%s: %+v", verdict, m)
		} else {
			t.Logf("%s: %s", verdict, m.Failed)
		}
		f.until("the note was sent", func() bool { return notes.Load() == int32(i+1) })
	}
}
