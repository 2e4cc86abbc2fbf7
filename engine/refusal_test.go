//go:build unix

package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"busbar.dev/engine"
	"busbar.dev/internal/test/freeport"
)

// TestRefusedAtOnce: a rank that was told otherwise, or has another secret, ends with the reason
// and does not wait for its minute to pass; rank 0 hears of it while it waits, and the job
// begins when the right rank comes.
func TestRefusedAtOnce(t *testing.T) {
	for name, place := range map[string]string{
		"file": filepath.Join(t.TempDir(), "meet"), "address": freeport.Address(t),
	} {
		var mu sync.Mutex
		var told []engine.Refused
		right := engine.Config{
			Rank: 0, Size: 2, Meet: place, Bind: "127.0.0.1", Secret: "s", Work: "all_reduce",
			OnRefusal: func(r engine.Refused) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, r)
			},
		}
		var host *engine.Group
		var wg sync.WaitGroup
		wg.Go(func() {
			g, err := engine.Join(context.Background(), right)
			if err != nil {
				t.Errorf("%s: rank 0: %v", name, err)
			}
			host = g
		})
		for _, tt := range []struct {
			work, secret, says string
			why                engine.Refusal
		}{
			{"broadcast", "s", "its flags are others", engine.OtherWork}, {"all_reduce", "x", "its secret", engine.WrongSecret},
		} {
			// An hour, which the test would not outlast.
			_, err := engine.Join(context.Background(), engine.Config{
				Rank: 1, Size: 2, Meet: place, Bind: "127.0.0.1", Secret: tt.secret, Work: tt.work, JoinTimeout: time.Hour,
			})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v; expected %q", name, err, tt.says)
			}
			heard := func() bool {
				mu.Lock()
				defer mu.Unlock()
				n := len(told)
				return n > 0 && told[n-1].Why == tt.why && told[n-1].Rank == 1 && strings.HasPrefix(told[n-1].From, "127.0.0.1:")
			}
			becomes(t, name+": rank 0 hears of "+tt.why.String(), heard) // after the other has been told
		}
		cfg := right
		cfg.Rank = 1
		g, err := engine.Join(context.Background(), cfg)
		if err != nil {
			t.Fatalf("%s: the right rank: %v", name, err)
		}
		wg.Wait()
		g.Close()
		host.Close()
	}
}

func TestConfigCheck(t *testing.T) {
	good := engine.Config{Rank: 1, Size: 2, Meet: "localhost:29500"}
	for _, tt := range []struct {
		change func(*engine.Config)
		says   string
	}{
		{func(*engine.Config) {}, ""},
		{func(c *engine.Config) { c.Meet = "./meet" }, ""},
		{func(c *engine.Config) { c.Rank = 2 }, "ranks are 0 to 1"},
		{func(c *engine.Config) { c.Conns = 100000 }, "1 to 64 are possible"},
		{func(c *engine.Config) { c.Timeout = 1 }, "at least 50 ms"},
		{func(c *engine.Config) { c.Meet = "localhost" }, "expected host:port"},
		{func(c *engine.Config) { c.Meet = "localhost:99999" }, "from 1 to 65535"},
		{func(c *engine.Config) { c.Meet = "localhost:0" }, "from 1 to 65535"},
		{func(c *engine.Config) { c.Bind = "nosuch0" }, "nosuch0"},
	} {
		c := good
		tt.change(&c)
		err := c.Check()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v; expected %q", c, err, tt.says)
		}
	}
}

func TestConfigExposed(t *testing.T) {
	for _, tt := range []struct {
		c    engine.Config
		want bool
	}{
		{engine.Config{Size: 1}, false},
		{engine.Config{Size: 2, Meet: "localhost:1"}, false},
		{engine.Config{Size: 2, Meet: "10.0.0.1:1"}, true},
		{engine.Config{Size: 2, Meet: "./meet"}, true},
		{engine.Config{Size: 2, Meet: "./meet", Bind: "127.0.0.1"}, false},
		{engine.Config{Size: 2, Meet: "localhost:1", Bind: "0.0.0.0"}, true},
	} {
		if got := tt.c.Exposed(); got != tt.want {
			t.Errorf("%+v: %v", tt.c, got)
		}
	}
}

// TestCheckPlaces: what cannot be met in or listened at is refused before anything is touched.
func TestCheckPlaces(t *testing.T) {
	dir := t.TempDir()
	pipe, device, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "device"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	// A link stands for a device: what follows it must neither replace nor open it.
	for from, to := range map[string]string{device: os.DevNull, link: pipe} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ meet, bind, says string }{
		{pipe, "", "a pipe"},
		{link, "", "a pipe"},
		{device, "", "a device"},
		{dir + "/", "", "a folder"},
		{filepath.Join(dir, "meet"), "192.0.2.1", "cannot listen"},
		{filepath.Join(dir, "meet"), "224.0.0.1", "multicast"},
		{filepath.Join(dir, "meet"), "ff02::1", "multicast"},
		{filepath.Join(dir, "meet"), "255.255.255.255", "broadcast"},
		{filepath.Join(dir, "meet"), " , ", "0 addresses"},
		{filepath.Join(dir, "meet"), "127.0.0.1", ""},
	} {
		cfg := engine.Config{Rank: 0, Size: 2, Meet: tt.meet, Bind: tt.bind}
		err := cfg.Check()
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("meet %s, bind %q: %v; expected %q", tt.meet, tt.bind, err, tt.says)
		}
	}
	// Join by itself asks as well: what is in the way stays what it was.
	cfg := engine.Config{Rank: 0, Size: 2, Meet: device, Bind: "127.0.0.1", JoinTimeout: time.Minute}
	if _, err := engine.Join(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("join at a device: %v", err)
	}
	if to, err := os.Readlink(device); err != nil || to != os.DevNull {
		t.Errorf("the link has become %q, %v", to, err)
	}
}
