package bus

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"

	"github.com/nats-io/nats-server/v2/server"
)

// TestMain runs the tests, or is a server that a test started as a process of its own.
func TestMain(m *testing.M) {
	if how := os.Getenv("BUSBAR_TEST_SERVER"); how != "" {
		if err := serverProcess(strings.Split(how, "|")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serverProcess is a server until it is killed: alone, or with routes one of a cluster as an
// operator would run it.
func serverProcess(a []string) error {
	dir, listen, name, own, routes := a[0], a[1], a[2], a[3], a[4]
	if routes == "" {
		if _, err := Start(ServerConfig{Dir: dir, Listen: listen}); err != nil {
			return err
		}
	} else {
		keys, err := OpenKeys(filepath.Join(filepath.Dir(dir), "keys"))
		if err != nil {
			return err
		}
		o, err := keys.ServerOptions(ServerConfig{Dir: dir, Listen: listen})
		if err != nil {
			return err
		}
		o.ServerName = name
		port, _ := strconv.Atoi(own)
		o.Cluster = server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: port}
		for _, r := range strings.Split(routes, ",") {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + r})
		}
		ns, err := server.NewServer(o)
		if err != nil {
			return err
		}
		ns.Start()
		if !ns.ReadyForConnections(eventually.Limit) {
			return fmt.Errorf("%s does not take connections", name)
		}
	}
	fmt.Println("ready")
	select {}
}

// place is where the suite finds its bus.
type place struct {
	t     *testing.T
	keys  *Keys
	start []func() *exec.Cmd // one a server
	procs []*exec.Cmd
	urls  []string
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		ports = append(ports, strconv.Itoa(freeport.Of(t)))
	}
	return ports
}

// newPlace starts n servers in processes of their own.
func newPlace(t *testing.T, n int) *place {
	t.Helper()
	root := t.TempDir()
	keyDir := filepath.Join(root, "keys")
	if n == 1 {
		keyDir = filepath.Join(root, "s0", "keys")
	}
	keys, err := OpenKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, keys: keys, procs: make([]*exec.Cmd, n)}
	clients, routes := freePorts(t, n), freePorts(t, n)
	for i := range n {
		p.urls = append(p.urls, "nats://127.0.0.1:"+clients[i])
		to := ""
		if n > 1 {
			to = strings.Join(routes, ",")
		}
		how := strings.Join([]string{
			filepath.Join(root, fmt.Sprintf("s%d", i)), "127.0.0.1:" + clients[i], fmt.Sprintf("s%d", i), routes[i], to,
		}, "|")
		p.start = append(p.start, func() *exec.Cmd {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "BUSBAR_TEST_SERVER="+how)
			c.Stderr = os.Stderr
			return c
		})
	}
	t.Cleanup(func() {
		for i := range n {
			p.kill(i)
		}
	})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { p.launch(i) })
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return p
}

func (p *place) launch(i int) {
	p.t.Helper()
	c := p.start[i]()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	p.procs[i] = c
	s := bufio.NewScanner(out)
	s.Scan()
	if s.Text() != "ready" {
		p.t.Errorf("server %d: %q", i, s.Text())
	}
}

// kill ends a server as a power switch would.
func (p *place) kill(i int) {
	if c := p.procs[i]; c != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		p.procs[i] = nil
	}
}

func (p *place) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *place) file(creds []byte) string {
	p.t.Helper()
	f, err := os.CreateTemp(p.t.TempDir(), "*.creds")
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(creds); err != nil {
		p.t.Fatal(err)
	}
	return f.Name()
}

func (p *place) hub() *Bus {
	p.t.Helper()
	creds, err := p.keys.Hub()
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := Connect(Config{URLs: p.urls, Creds: p.file(creds), MaxBytes: 256 << 20})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(b.Close)
	if err := b.Ensure(p.ctx()); err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p *place) node(n fleet.Name) *Bus {
	p.t.Helper()
	creds, _, err := p.keys.Issue(n, time.Hour)
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := Connect(Config{URLs: p.urls, Creds: p.file(creds), Node: n})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(b.Close)
	return b
}

// stored reads all that is stored: what are events, and how many are none.
func stored(t testing.TB, b *Bus) (list []*fleet.Event, bad int) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*eventually.Limit)
	defer stop()
	read := false
	err := b.Follow(ctx, Following{
		Each: func(e Entry) {
			if e.Event == nil {
				bad++
			} else {
				list = append(list, e.Event)
			}
		},
		CaughtUp: func(uint64) { read = true; stop() },
	})
	if !read {
		t.Fatal("the store cannot be read: ", err)
	}
	return list, bad
}

func left(n fleet.Name) *fleet.Event {
	return &fleet.Event{At: time.Now().UTC(), Node: n, Kind: fleet.KindLeft}
}
