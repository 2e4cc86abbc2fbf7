package browsertests

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	program = flag.String("busbar", "", "the program to try, which TestMain builds where none is named")
	shots   = flag.String("shots", "", "a folder for pictures of every view")
	engine  = flag.String("chromium", "/usr/bin/chromium", "the browser")
	axeFile = flag.String("axe", ".axe/axe.min.js", "axe-core, as make browser fetches it")
)

// TestMain builds the program once.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if _, err := os.Stat(*engine); *program != "" || err != nil {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "busbar-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		*program = filepath.Join(dir, "busbar")
		build := exec.Command("go", "build", "-o", *program, "./cmd/busbar")
		build.Dir = "../.."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// home is what the page opens with: the two questions.
const home = `document.querySelectorAll('.home h1').length === 2`

// page is a browser at a server of its own.
type page struct {
	t     *testing.T
	ctx   context.Context
	url   string
	token string // which logs in as often as one likes
	bus   string // where agents connect to
	data  string
	bin   string

	mu       sync.Mutex
	faults   []string
	expected bool // a fault that a test provokes
}

// start runs a server and a browser, and logs in by the address that the server prints.
func start(t *testing.T) *page {
	t.Helper()
	if _, err := os.Stat(*engine); err != nil {
		t.Skipf("no Chromium at %s (-chromium names another)", *engine)
	}
	p := &page{t: t, data: t.TempDir()}
	login := p.serve()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(*engine), chromedp.NoSandbox,
		chromedp.WindowSize(1366, 768))
	alloc, end := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	p.ctx = ctx
	p.do(chromedp.EmulateViewport(1366, 768),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error { return p.listen(ctx, target) }))
	p.do(chromedp.Navigate(login))
	p.wait(home)
	return p
}

// serve starts the program and gives the address that logs in.
func (p *page) serve() string {
	p.t.Helper()
	p.bin, p.bus = *program, freePort(p.t)
	cmd := exec.Command(p.bin, "serve", "--listen", "127.0.0.1:0", "--bus-listen", p.bus, "--data", p.data)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "open "); ok {
			p.url, _, _ = strings.Cut(at, "/login#") // which is for one login
			secret, err := exec.Command(p.bin, "serve", "token", "add", "tests", "--role", "order", "--data", p.data).Output()
			if err != nil {
				p.t.Fatal(err)
			}
			p.token = strings.TrimSpace(string(secret))
			go func() {
				for lines.Scan() {
				}
			}()
			return at
		}
	}
	p.t.Fatal("the server printed no address")
	return ""
}

// freePort is an address of loopback that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// listen collects what the browser complains about, and requests to other hosts.
func (p *page) listen(ctx context.Context, target *chromedp.Target) error {
	for _, enable := range []func() error{
		func() error { _, err := cdp.Call(ctx, target, runtime.Enable, cdp.Empty{}); return err },
		func() error { _, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{}); return err },
	} {
		if err := enable(); err != nil {
			return err
		}
	}
	all := p.ctx
	go collect(p, cdp.Events(all, target, log.EntryAdded), func(e log.EventEntryAdded) string {
		if e.Entry.Level == log.EntryLevelError {
			return fmt.Sprint("log: ", e.Entry.Text, " ", e.Entry.URL)
		}
		return ""
	})
	go collect(p, cdp.Events(all, target, runtime.ExceptionThrown), func(e runtime.EventExceptionThrown) string {
		return fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	})
	go collect(p, cdp.Events(all, target, runtime.ConsoleAPICalled), func(e runtime.EventConsoleAPICalled) string {
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			return fmt.Sprintf("console: %v", e.Args)
		}
		return ""
	})
	go collect(p, cdp.Events(all, target, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) string {
		if u := e.Request.URL; !strings.HasPrefix(u, p.url) && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "blob:") {
			return "asks another host: " + u
		}
		return ""
	})
	go collect(p, cdp.Events(all, target, network.ResponseReceived), func(e network.EventResponseReceived) string {
		if e.Response.Status >= 400 {
			return fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL)
		}
		return ""
	})
	return nil
}

func collect[E any](p *page, events func(func(E, error) bool), fault func(E) string) {
	for e, err := range events {
		if err != nil {
			return
		}
		if text := fault(e); text != "" {
			p.mu.Lock()
			if !p.expected {
				p.faults = append(p.faults, text)
			}
			p.mu.Unlock()
		}
	}
}

// clean fails when the browser complained.
func (p *page) clean(what string) {
	p.t.Helper()
	time.Sleep(100 * time.Millisecond) // events of what was just seen
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		p.t.Errorf("%s: %s", what, f)
	}
	p.faults = nil
}

// limited bounds one step against hanging.
func (p *page) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, 40*time.Second)
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until an expression is true.
func (p *page) wait(expr string) {
	p.t.Helper()
	end := time.Now().Add(30 * time.Second)
	for {
		ok, err := eval[bool](p, "Boolean("+expr+")")
		if ok {
			return
		}
		if time.Now().After(end) {
			text, _ := eval[string](p, "document.body.innerText.slice(0, 1500)")
			p.t.Fatalf("waited for %s: %v\npage:\n%s", expr, err, text)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func eval[T any](p *page, expr string) (T, error) {
	ctx, end := p.limited()
	defer end()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expr, chromedp.EvalAwaitPromise))
}

func (p *page) run(expr string) {
	p.t.Helper()
	if _, err := eval[[]byte](p, expr); err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
}

// open goes to a view and waits until it is whole.
func (p *page) open(path, until string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.url + path))
	p.wait(until)
}

// shot keeps a picture of what is seen.
func (p *page) shot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	if err := os.MkdirAll(*shots, 0o777); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // fading
	data, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), data, 0o666); err != nil {
		p.t.Fatal(err)
	}
}
