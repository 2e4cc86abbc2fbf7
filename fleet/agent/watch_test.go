package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// TestAbsentPeer measures with a node that never comes.
func TestAbsentPeer(t *testing.T) {
	f := newFixture(t)
	c, _ := f.agent("a", nil)
	p := pairPart("p", []fleet.Name{"a", "b"}, c.Meet)
	p.Caps.Time = time.Second
	if a := f.ask("a", p); !a.Begins {
		t.Fatalf("%+v", a)
	}
	f.until("the part's end", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 1 })
	if m := f.sent("a", fleet.KindMeasured)[0].Measured; m.Failed == "" || len(m.Pairs) != 0 {
		t.Errorf("%+v", m)
	}
}

// machine is a /sys that changes.
type machine struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (m *machine) Open(name string) (fs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files.Open(name)
}

func (m *machine) set(name, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := fstest.MapFS{}
	for k, v := range m.files {
		next[k] = v
	}
	next[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	m.files = next
}

func TestWatchesPorts(t *testing.T) {
	f := newFixture(t)
	m := &machine{files: fstest.MapFS{}}
	const eth, ib = "sys/class/net/eth9/", "sys/class/infiniband/mlx5_0/ports/1/"
	for name, text := range map[string]string{
		eth + "operstate": "up", eth + "speed": "100000", eth + "device/vendor": "x", eth + "carrier_changes": "1",
		eth + "statistics/rx_errors": "0", eth + "statistics/rx_bytes": "0", eth + "statistics/tx_bytes": "0",
		"sys/class/net/veth1/operstate": "up", "sys/class/net/lo/operstate": "unknown",
		ib + "state": "4: ACTIVE", ib + "rate": "400 Gb/sec (4X NDR)", ib + "counters/symbol_error": "3",
		ib + "counters/port_xmit_data": "0", ib + "counters/port_rcv_data": "0",
		"proc/sys/kernel/random/boot_id": "boot-1", "proc/loadavg": "1.5 1 1 1/1 1",
	} {
		m.set(name, text)
	}
	c, end := f.agent("a", func(c *Config) {
		c.Sys = m
		c.Map = func() (json.RawMessage, error) { return json.RawMessage(`{"summary":{}}`), nil }
	})
	f.until("links", func() bool {
		return len(f.sent("a", fleet.KindJoined)) > 0 && len(f.sent("a", fleet.KindLink)) == 2 &&
			len(f.sent("a", fleet.KindCounters)) == 1
	})
	j := f.sent("a", fleet.KindJoined)[0].Joined
	if j.Boot != "boot-1" || j.Meet != c.Meet || string(j.Map) != `{"summary":{}}` {
		t.Errorf("%+v", j)
	}
	v := f.sent("a", fleet.KindCounters)[0].Counters.Values
	if v["mlx5_0/1"]["symbol_error"] != 3 || len(v) != 2 {
		t.Errorf("%v", v)
	}
	if l := f.sent("a", fleet.KindLink)[1].Link; l.Port != "mlx5_0/1" || !l.Up || l.Rate != 50e9 || l.State != "ACTIVE" {
		t.Errorf("%+v", l)
	}
	m.set(ib+"counters/symbol_error", "9")
	m.set(eth+"operstate", "down")
	f.until("what moved", func() bool {
		return len(f.sent("a", fleet.KindLink)) == 3 &&
			len(f.sent("a", fleet.KindCounters)) == 2
	})
	if v := f.sent("a", fleet.KindCounters)[1].Counters.Values; fmt.Sprint(v) != "map[mlx5_0/1:map[symbol_error:9]]" {
		t.Errorf("%v", v)
	}
	// Traffic that is not ours: 4 bytes a word, far above the bound.
	stop := make(chan struct{})
	var job sync.WaitGroup
	job.Go(func() {
		for n := uint64(0); ; n += 100e6 / 4 {
			m.set(ib+"counters/port_xmit_data", fmt.Sprint(n))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	p := pairPart("p", []fleet.Name{"a", "b"}, c.Meet)
	if a := f.ask("a", p); a.Begins || !a.Busy || !strings.Contains(a.Why, "carries") {
		t.Errorf("a node that carries a job's traffic: %+v", a)
	}
	close(stop)
	job.Wait()
	f.until("a beat", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.beat["a"] != nil && f.beat["a"].Load == 1.5
	})
	if err := end(); err != nil {
		t.Fatal(err)
	}
	f.until("a farewell", func() bool { return len(f.sent("a", fleet.KindLeft)) == 1 })
}

// TestDriverCounters: what a driver counts beyond /sys is told of, pause frames seldom.
func TestDriverCounters(t *testing.T) {
	f := newFixture(t)
	m := &machine{files: fstest.MapFS{}}
	for _, name := range []string{"eth8", "eth9"} {
		m.set("sys/class/net/"+name+"/operstate", "up")
		m.set("sys/class/net/"+name+"/device/vendor", "x")
		m.set("sys/class/net/"+name+"/statistics/rx_errors", "1")
	}
	m.set("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
	var mu sync.Mutex
	now := map[string]uint64{"rx_prio3_pause": 5, "rx_discards_phy": 0, "rx_errors": 99}
	asked := map[string]bool{}
	_, end := f.agent("a", func(c *Config) {
		c.Sys, c.Look = m, 20*time.Millisecond
		c.Driver = func(name string) (map[string]uint64, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[name] = true
			if name == "eth8" {
				return nil, errors.New("no such driver")
			}
			now["rx_prio3_pause"]++ // as on a busy lossless network
			return maps.Clone(now), nil
		}
	})
	f.until("counters", func() bool { return len(f.sent("a", fleet.KindCounters)) == 1 })
	v := f.sent("a", fleet.KindCounters)[0].Counters.Values
	if fmt.Sprint(v["eth9"]) != "map[rx_discards_phy:0 rx_errors:1 rx_prio3_pause:6]" ||
		fmt.Sprint(v["eth8"]) != "map[rx_errors:1]" {
		t.Errorf("%v", v)
	}
	mu.Lock()
	now["rx_discards_phy"] = 7
	mu.Unlock()
	f.until("a discard", func() bool { return len(f.sent("a", fleet.KindCounters)) >= 2 })
	if v := f.sent("a", fleet.KindCounters)[1].Counters.Values; fmt.Sprint(v) != "map[eth9:map[rx_discards_phy:7]]" {
		t.Errorf("%v", v)
	}
	f.until("pauses", func() bool { return len(f.sent("a", fleet.KindCounters)) >= 3 })
	v = f.sent("a", fleet.KindCounters)[2].Counters.Values
	if n := v["eth9"]["rx_prio3_pause"]; n < 5+seldom || len(v["eth9"]) != 1 {
		t.Errorf("pause frames were told of before %d looks: %v", seldom, v)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !asked["eth8"] || asked["mlx5_0/1"] {
		t.Errorf("asked %v", asked)
	}
}

// TestSecondOfOneName starts two agents with one name. The second is refused with a word about the first, which goes
// on; when that has ended, another takes over.
func TestSecondOfOneName(t *testing.T) {
	f := newFixture(t)
	busy := func(c *Config) {
		m := &machine{files: fstest.MapFS{}}
		n := 0
		c.Sys, c.Look = m, 20*time.Millisecond
		c.On = func(Event) {}
		m.set("sys/class/net/e/device/x", "")
		go func() {
			for change := time.Tick(20 * time.Millisecond); f.ctx.Err() == nil; <-change {
				n++
				m.set("sys/class/net/e/carrier_changes", fmt.Sprint(n))
			}
		}()
	}
	first, end := f.agent("twin", busy)
	f.until("the first is there", func() bool { return len(f.sent("twin", fleet.KindCounters)) > 2 })
	f.agent("twin", busy)
	var conflict *bus.ConflictError
	if err := <-f.ended; !errors.As(err, &conflict) || !strings.Contains(err.Error(), first.Meet) {
		t.Errorf("the second ended with %v; want a conflict that names %s", err, first.Meet)
	}
	before := len(f.sent("twin", fleet.KindCounters))
	f.until("the first goes on", func() bool { return len(f.sent("twin", fleet.KindCounters)) > before+5 })
	if err := end(); err != nil { // and what it ends with is not lost
		t.Fatal(err)
	}
	<-f.ended
	f.agent("twin", busy)
	f.until("another takes over", func() bool { return len(f.sent("twin", fleet.KindJoined)) > 1 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range f.events {
		if n.Seq != uint64(i+1) {
			t.Fatalf("place %d has number %d", i+1, n.Seq)
		}
	}
}

// TestTellsAllAgain has a node say anew what it said long ago, for the store may have dropped it.
func TestResendsAll(t *testing.T) {
	f := newFixture(t)
	m := &machine{files: fstest.MapFS{}}
	m.set("sys/class/net/eth9/operstate", "up")
	m.set("sys/class/net/eth9/device/vendor", "x")
	m.set("sys/class/net/eth9/statistics/rx_errors", "7")
	f.agent("a", func(c *Config) { c.Sys, c.Resend = m, 200*time.Millisecond })
	f.until("all of it three times", func() bool {
		return len(f.sent("a", fleet.KindJoined)) >= 3 && len(f.sent("a", fleet.KindLink)) >= 3 &&
			len(f.sent("a", fleet.KindCounters)) >= 3
	})
	for _, n := range f.sent("a", fleet.KindCounters) {
		if n.Counters.Values["eth9"]["rx_errors"] != 7 {
			t.Errorf("%+v", n.Counters)
		}
	}
}
