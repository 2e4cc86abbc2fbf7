// Package ranks makes processes the ranks of a job on an engine, whoever starts them.
//
// A process is a rank of a job where a launcher (torchrun, srun, mpirun, an indexed Kubernetes job) or the user says
// so; ConfigFromEnv reads what launchers say. Elsewhere Job.Run starts processes of its own, or ranks that are
// goroutines of this process, connects them and waits for their end.
//
// The package is as stable as the flags of busbar bench: Job's fields are those flags. What processes say to each other
// may change.
package ranks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// ErrWrong is that a rank did its work and found that something is wrong: its exit code is 1.
var ErrWrong = errors.New("a rank found something wrong")

// Job says who takes part in a measurement and how the ranks find and reach each other.
type Job struct {
	Ranks     int           `short:"n" name:"ranks" least:"1" help:"Number of ranks; without a launcher they are processes of this host."`
	Transport string        `enum:"auto,tcp,shm,mem" default:"auto" help:"auto, tcp, shm (processes of one host) or mem (ranks of one process) (default auto)."`
	Conns     int           `default:"1" least:"1" most:"64" help:"Connections per pair of ranks (default 1)."`
	Bind      string        `placeholder:"IFACE|ADDR" help:"Interfaces or addresses to use, separated by commas."`
	Timeout   time.Duration `default:"10s" least:"50ms" help:"Time after which a silent rank is reported as dead or hung (default 10s)."`
	Patience  time.Duration `name:"meet-timeout" default:"1m" least:"100ms" help:"How long ranks wait for each other at the rendezvous (default 1m)."`
	Rank      int           `default:"-1" least:"0" help:"This rank's number when ranks are started manually; needs -n and --meet on every rank."`
	Meet      string        `placeholder:"HOST:PORT|FILE" help:"Rendezvous when ranks are started manually: rank 0's address, or a file whose name has a slash."`
	TLSCert   string        `name:"tls-cert" placeholder:"FILE" help:"Protect all connections with TLS: this rank's certificate."`
	TLSKey    string        `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	TLSCA     string        `name:"tls-ca" placeholder:"FILE" help:"CA certificates that signed the certificates of all ranks."`
}

// DefaultJob is a job whose fields have the defaults of their tags.
func DefaultJob() Job {
	return Job{Transport: "auto", Conns: 1, Timeout: 10 * time.Second, Patience: time.Minute, Rank: -1}
}

// Task is what ranks do.
type Task struct {
	// Valid is asked first whether the work is possible on so many ranks.
	Valid func(n int) error
	// Work is done by every rank. What rank 0 leaves it gives to keep.
	Work func(g *engine.Group, keep func([]byte) error) error
	// Star is the work of ranks of which some may be missing; nil: Work is to be done.
	Star func(s *engine.Star, keep func([]byte) error) error
	// Same is what must be the same on every rank; a rank with another is refused when the ranks
	// meet, and not when its messages make no sense.
	Same string
	// Ready is asked by the process that will keep what the job leaves, before anything is
	// started, whether it could; nil: there is nothing to keep.
	Ready func() error
	// Keep takes what rank 0 leaves, in the process that the user started.
	Keep func([]byte) error
	// Memory is what a rank of so many needs for its buffers, and Advice how to need less.
	Memory func(n int) unit.Bytes
	Advice string
}

// Process is how this process, which may start others like it, is connected to its user.
type Process struct {
	Args           []string // with which this program does the same as a rank; nil: it starts no ranks
	Stdout, Stderr io.Writer
	// Screen and Messages are standard output and standard error where those are terminals. Rank 0 writes to them itself:
	// rows that went through this process would come into the middle of its progress. Screen is used with Messages only.
	Screen, Messages *os.File
	// Note is told about ranks that are refused or do not come; nil: nobody is.
	Note func(text string)
	// Crash is told the first lines of what a rank says that crashes; nil: nobody is.
	Crash func(text string)
}

// Run does the work on every rank: as the rank that a launcher or the fields made of this
// process, on ranks that are goroutines of it, or on processes that it starts. All that can be
// known to be impossible is found before anything is started.
func (j *Job) Run(ctx context.Context, p Process, t Task) error {
	cfg, found, err := j.config()
	if err != nil {
		return err
	}
	n := cfg.Size
	if !found {
		n = j.count()
	}
	parent, err := openParent()
	if err != nil {
		return err
	}
	keep := t.Keep
	if parent != nil {
		defer parent.Close()
		keep = func(data []byte) error {
			if _, err := parent.Write(data); err != nil {
				return failure.Cannot(fmt.Errorf("results for the process that started this rank: %w", err))
			}
			return nil
		}
	}
	if err := j.possible(cfg, found, n, t); err != nil {
		return err
	}
	// Whoever keeps what is left is rank 0, or the process that started it.
	if t.Ready != nil && parent == nil && (!found || cfg.Rank == 0) {
		if err := t.Ready(); err != nil {
			return err
		}
	}
	switch {
	case t.Star != nil && j.Transport == "mem":
		return errors.New("--transport mem has no connections to look at; take auto, tcp or shm")
	case t.Star != nil && !found && p.Args == nil:
		return j.starHere(ctx, p, n, t, keep)
	case j.Transport == "mem" || !found && p.Args == nil && j.Transport == "auto":
		return inProcess(n, func(g *engine.Group) error { return t.Work(g, keep) })
	case !found && p.Args == nil:
		return fmt.Errorf("--transport %s: this program cannot start ranks of its own; take mem, or a launcher", j.Transport)
	case !found:
		return j.launch(ctx, p, n, t)
	}
	return j.member(ctx, p, cfg, t, keep)
}

// member works as one rank of a job.
func (j *Job) member(ctx context.Context, p Process, cfg engine.Config, t Task, keep func([]byte) error) error {
	cfg.Work = fmt.Sprintf("%s %d %s", j.Transport, j.Conns, t.Same)
	if p.Note != nil {
		if cfg.Rank == 0 {
			cfg.OnRefusal = (&refusals{note: p.Note}).add
			if cfg.Exposed() && cfg.Secret == "" && cfg.TLS == nil {
				p.Note("warning: the ranks listen where other hosts can reach them, and whoever knows the job's name is let in; " +
					"set BUSBAR_SECRET to the same words on all ranks, or use --tls-cert, --tls-key and --tls-ca")
			}
		}
		cfg.OnWait = p.Note
	}
	if t.Star != nil {
		s, err := engine.JoinStar(ctx, cfg)
		if err != nil {
			return failure.Cannot(err)
		}
		defer s.Close()
		return t.Star(s, keep)
	}
	g, err := engine.Join(ctx, cfg)
	if err != nil {
		return failure.Cannot(err)
	}
	defer g.Close()
	return t.Work(g, keep)
}

// starHere runs all ranks of a star in this process, over its loopback.
func (j *Job) starHere(ctx context.Context, p Process, n int, t Task, keep func([]byte) error) error {
	dir, done, err := meetFolder()
	if err != nil {
		return failure.Cannot(err)
	}
	defer done()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := engine.Config{
			Rank: r, Size: n, Meet: filepath.Join(dir, "meet"), Bind: "127.0.0.1", Timeout: j.Timeout, JoinTimeout: j.Patience,
			Conns: j.Conns,
		}
		wg.Go(func() { errs[r] = j.member(ctx, p, cfg, t, keep) })
	}
	wg.Wait()
	return errs[0]
}

// possible refuses what cannot be done by so many ranks, here.
func (j *Job) possible(cfg engine.Config, found bool, n int, t Task) error {
	switch {
	case !found && n > maxStarted:
		return fmt.Errorf("-n %d: at most %d ranks are started on one host; use a launcher for more", n, maxStarted)
	case found && j.Transport == "mem":
		return errors.New("--transport mem is for ranks of one process; it cannot be used with a launcher or --rank")
	case !found && j.Meet != "":
		return errors.New("--meet needs --rank, this rank's number, and -n; without them ranks are started here and find a " +
			"place of their own")
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
	if err := t.Valid(n); err != nil {
		return err
	}
	return fits(here, t.Memory(n), t.Advice)
}

// refusals tells of connections that were refused, each kind of them once.
type refusals struct {
	note func(text string)
	mu   sync.Mutex
	told map[string]bool
}

func (t *refusals) add(r engine.Refused) {
	t.mu.Lock()
	defer t.mu.Unlock()
	host, _, err := net.SplitHostPort(r.From)
	if err != nil {
		host = r.From
	}
	key := fmt.Sprint(host, r.Rank, r.Why)
	const most = 16 // they are counted at the end as well
	if t.told[key] || len(t.told) == most {
		return
	}
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[key] = true
	t.note(r.String())
}

// maxStarted is how many ranks are started on one host; more would take it down.
const maxStarted = 1024

// count is the number of ranks to start.
func (j *Job) count() int {
	if j.Ranks > 0 {
		return j.Ranks
	}
	return min(max(runtime.NumCPU(), 2), 8)
}

// config finds out whether this process is a rank of a job, by its flags or a launcher's
// environment.
func (j *Job) config() (cfg engine.Config, found bool, err error) {
	cfg, launcher, err := ConfigFromEnv(ThisProcess())
	switch {
	case j.Rank >= 0:
		if j.Ranks < 1 || j.Meet == "" && j.Ranks > 1 {
			return cfg, true, errors.New("--rank needs -n (the number of ranks) and --meet (where they meet)")
		}
		cfg.Rank, cfg.Size, err = j.Rank, j.Ranks, nil
		found = true
	case err != nil && cfg.Size == 0: // what a launcher says makes no sense; starting ranks here would not help
		return cfg, true, err
	case launcher == "" || cfg.Size <= 1 && j.Ranks > 1:
		err = nil
	case j.Ranks > 0 && j.Ranks != cfg.Size:
		return cfg, true, fmt.Errorf("-n %d, but %s has started %d ranks", j.Ranks, launcher, cfg.Size)
	default:
		found = true
	}
	if j.Meet != "" && found {
		cfg.Meet, err = j.Meet, nil
	}
	if j.Bind != "" {
		cfg.Bind = j.Bind
	}
	if j.Transport != "auto" {
		cfg.Transport = engine.Transport(j.Transport)
	}
	cfg.Conns, cfg.Timeout, cfg.JoinTimeout = j.Conns, j.Timeout, j.Patience
	if err == nil {
		cfg.TLS, err = j.tls()
	}
	return cfg, found, err
}

// tls is nil where no field asks for it.
func (j *Job) tls() (*tls.Config, error) {
	if j.TLSCert == "" && j.TLSKey == "" && j.TLSCA == "" {
		return nil, nil
	}
	if j.TLSCert == "" || j.TLSKey == "" || j.TLSCA == "" {
		return nil, errors.New("TLS needs all of --tls-cert, --tls-key and --tls-ca")
	}
	cfg, err := engine.LoadTLS(j.TLSCert, j.TLSKey, j.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return cfg, nil
}

// inProcess runs all ranks in this process.
func inProcess(n int, work func(*engine.Group) error) error {
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
