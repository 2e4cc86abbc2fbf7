package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// rankFlags say who takes part in a measurement and how the ranks find and reach each other.
type rankFlags struct {
	Ranks     int           `short:"n" name:"ranks" least:"1" help:"How many ranks. Without a launcher they are processes of this host."`
	Transport string        `enum:"auto,tcp,shm,mem" default:"auto" help:"auto, tcp, shm (processes of one host) or mem (ranks of one process)."`
	Conns     int           `default:"1" least:"1" most:"64" help:"Connections between each pair of ranks."`
	Bind      string        `placeholder:"IFACE|ADDR" help:"Interfaces or addresses to use, with commas."`
	Timeout   time.Duration `default:"10s" least:"50ms" help:"How soon a rank that died or hangs is noticed."`
	Patience  time.Duration `name:"meet-timeout" default:"1m" least:"100ms" help:"How long the ranks wait for each other to meet."`
	Rank      int           `default:"-1" least:"0" help:"By hand: this rank's number, with -n and --meet on every rank."`
	Meet      string        `placeholder:"HOST:PORT|FILE" help:"By hand: where the ranks meet: rank 0's address, or a file with a slash in its name."`
	TLSCert   string        `name:"tls-cert" placeholder:"FILE" help:"Protect all connections with TLS: this rank's certificate."`
	TLSKey    string        `name:"tls-key" placeholder:"FILE" help:"The certificate's key."`
	TLSCA     string        `name:"tls-ca" placeholder:"FILE" help:"The certificates of the authority that signed those of all ranks."`
}

// job is what ranks do.
type job struct {
	// valid is asked first whether the work is possible on so many ranks.
	valid func(n int) error
	work  func(*engine.Group) error
	// elastic is the work of members that may be lost and joined; nil: work is to be done.
	elastic func(x *engine.Elastic, newcomer bool) error
	least   int // members of an elastic job
	// same are the flags that must be the same on every rank; a rank with others is refused
	// when the ranks meet, and not when its messages make no sense.
	same string
	// ready is asked by the process that will write what the job leaves, before anything is
	// started, whether it could; nil: there is nothing to write.
	ready func() error
	// keep takes what rank 0 delivers, where that is another process; nil: it delivers nothing.
	keep func([]byte) error
	// memory is what a rank of so many needs for its buffers, and advice how to need less.
	memory func(n int) unit.Bytes
	advice string
	quiet  bool // no notes
	// verbose: of a rank that crashes, show the first lines of what it said.
	verbose bool
}

// everywhere does the work on every rank: as the rank that a launcher or the flags made of
// this process, on ranks that are goroutines of it, or on processes that it starts. All that
// can be known to be impossible is found before anything is started.
func (f *rankFlags) everywhere(e *env, j job) error {
	cfg, found, err := f.place()
	if err != nil {
		return err
	}
	if j.elastic != nil {
		if found, err = f.asElastic(&cfg, found, j.least); err != nil {
			return err
		}
	}
	n := cfg.Size
	if !found {
		n = f.count()
	}
	if e.parcel, err = openParcel(); err != nil {
		return err
	}
	if e.parcel != nil {
		defer e.parcel.Close()
	}
	if err := f.possible(cfg, found, n, j); err != nil {
		return err
	}
	// Whoever writes is rank 0, or the process that started it.
	if j.ready != nil && e.parcel == nil && (!found || cfg.Rank == 0) {
		if err := j.ready(); err != nil {
			return err
		}
	}
	switch {
	case f.Transport == "mem":
		return f.inProcess(n, j.work)
	case !found:
		return f.launch(e, n, j)
	}
	if cfg.Work = fmt.Sprintf("%s %d %s", f.Transport, f.Conns, j.same); cfg.Rank == 0 && !j.quiet {
		cfg.OnRefusal = (&turnedAway{w: e.stderr}).tell
		if cfg.Exposed() && cfg.Secret == "" && cfg.TLS == nil {
			fmt.Fprintln(e.stderr, "busbar: warning: the ranks listen where other hosts can reach them, and whoever knows the job's name is let in; set BUSBAR_SECRET to the same words on all ranks, or use --tls-cert, --tls-key and --tls-ca")
		}
	}
	if !j.quiet {
		cfg.OnWait = func(w engine.Waiting) { fmt.Fprintln(e.stderr, "busbar:", w) }
	}
	if j.elastic != nil {
		return f.inElastic(e, cfg, j)
	}
	g, err := engine.Join(e.ctx, cfg)
	if err != nil {
		return failure.Cannot(err)
	}
	defer g.Close()
	return j.work(g)
}

// possible refuses what cannot be done by so many ranks, here.
func (f *rankFlags) possible(cfg engine.Config, found bool, n int, j job) error {
	switch {
	case !found && n > maxStarted:
		return fmt.Errorf("-n %d: at most %d ranks are started on one host; use a launcher for more", n, maxStarted)
	case found && f.Transport == "mem":
		return errors.New("--transport mem is for ranks of one process; it cannot be used with a launcher or --rank")
	case !found && f.Meet != "":
		return errors.New("--meet needs --rank, this rank's number, and -n; without them ranks are started here and find a place of their own")
	}
	here := n
	if found {
		here = localRanks(os.Getenv, n)
	} else {
		cfg.Rank, cfg.Size, cfg.Meet = 0, n, "127.0.0.1:1" // where they meet will be found
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	if err := j.valid(n); err != nil {
		return err
	}
	return fits(here, j.memory(n), j.advice)
}

// openParcel is the file for what a rank leaves to the process that started it; nil where that
// was not this program.
func openParcel() (*os.File, error) {
	word := os.Getenv(parcelVariable)
	if word == "" {
		return nil, nil
	}
	var st syscall.Stat_t
	if word != "1" || syscall.Fstat(parcelFile, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil, fmt.Errorf("%s is %q: it is for ranks that busbar itself starts; unset it", parcelVariable, word)
	}
	return os.NewFile(parcelFile, "parcel"), nil
}

// turnedAway tells of connections that were refused, each kind of them once.
type turnedAway struct {
	w    io.Writer
	mu   sync.Mutex
	said map[string]bool
}

func (t *turnedAway) tell(r engine.Refused) {
	t.mu.Lock()
	defer t.mu.Unlock()
	host, _, err := net.SplitHostPort(r.From)
	if err != nil {
		host = r.From
	}
	key := fmt.Sprint(host, r.Rank, r.Why)
	const most = 16 // they are counted at the end as well
	if t.said[key] || len(t.said) == most {
		return
	}
	if t.said == nil {
		t.said = map[string]bool{}
	}
	t.said[key] = true
	fmt.Fprintln(t.w, "busbar:", r)
}

// maxStarted is how many ranks are started on one host; more would take it down.
const maxStarted = 1024

// count is the number of ranks to start.
func (f *rankFlags) count() int {
	if f.Ranks > 0 {
		return f.Ranks
	}
	return min(max(runtime.NumCPU(), 2), 8)
}

// place finds out whether this process is a rank of a job, by its flags or a launcher's
// environment.
func (f *rankFlags) place() (cfg engine.Config, found bool, err error) {
	cfg, launcher, err := engine.FromEnv(engine.Surroundings{Getenv: os.Getenv, Parent: os.Getppid(), Temp: os.TempDir(), User: os.Getuid()})
	switch {
	case f.Rank >= 0:
		if f.Ranks < 1 || f.Meet == "" && f.Ranks > 1 {
			return cfg, true, errors.New("--rank needs -n (the number of ranks) and --meet (where they meet)")
		}
		cfg.Rank, cfg.Size, err = f.Rank, f.Ranks, nil
		found = true
	case err != nil && cfg.Size == 0: // what a launcher says makes no sense; starting ranks here would not help
		return cfg, true, err
	case launcher == "" || cfg.Size <= 1 && f.Ranks > 1:
		err = nil
	case f.Ranks > 0 && f.Ranks != cfg.Size:
		return cfg, true, fmt.Errorf("-n %d, but %s has started %d ranks", f.Ranks, launcher, cfg.Size)
	default:
		found = true
	}
	if f.Meet != "" && found {
		cfg.Meet, err = f.Meet, nil
	}
	if f.Bind != "" {
		cfg.Bind = f.Bind
	}
	if f.Transport != "auto" {
		cfg.Transport = engine.Transport(f.Transport)
	}
	cfg.Conns, cfg.Timeout, cfg.JoinTimeout = f.Conns, f.Timeout, f.Patience
	if err == nil {
		cfg.TLS, err = f.tls()
	}
	return cfg, found, err
}

// inProcess runs all ranks in this process.
func (f *rankFlags) inProcess(n int, work func(*engine.Group) error) error {
	groups, err := engine.Local(n)
	if err != nil {
		return err
	}
	errs := make(chan error, n)
	for _, g := range groups {
		go func() {
			err := work(g)
			g.Close()
			errs <- err
		}()
	}
	var worst error
	for range groups {
		if err := <-errs; err != nil && (worst == nil || errors.Is(worst, engine.ErrClosed)) {
			worst = err
		}
	}
	return worst
}
