package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"busbar/engine"
)

// rankFlags say who takes part in a measurement and how the ranks find and reach each other.
type rankFlags struct {
	Ranks     int           `short:"n" name:"ranks" help:"How many ranks. Without a launcher they are processes of this host."`
	Transport string        `enum:"auto,tcp,shm,mem" default:"auto" help:"auto, tcp, shm (processes of one host) or mem (ranks of one process)."`
	Conns     int           `default:"1" help:"Connections between each pair of ranks."`
	Bind      string        `placeholder:"IFACE|ADDR" help:"Interfaces or addresses to use, with commas."`
	Timeout   time.Duration `default:"10s" help:"How soon a rank that died or hangs is noticed."`
	Rank      int           `default:"-1" help:"By hand: this rank's number, with -n and --meet on every rank."`
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
	// keep takes what rank 0 delivers, where that is another process; nil: it delivers nothing.
	keep func([]byte) error
}

// everywhere does the work on every rank: as the rank that a launcher or the flags made of
// this process, on ranks that are goroutines of it, or on processes that it starts.
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
	if !found && n > maxStarted {
		return fmt.Errorf("-n %d: at most %d ranks are started on one host; use a launcher for more", n, maxStarted)
	}
	if found && f.Transport == "mem" {
		return errors.New("--transport mem is for ranks of one process; it cannot be used with a launcher or --rank")
	}
	if err := j.valid(n); err != nil {
		return err
	}
	cfg.Job += " " + signature(f.Transport+" "+j.same)
	switch {
	case f.Transport == "mem":
		return f.inProcess(n, j.work)
	case !found:
		return f.launch(e, n, j.elastic != nil, j.keep)
	}
	if os.Getenv(parcelVariable) != "" {
		e.parcel = os.NewFile(parcelFile, "parcel")
		defer e.parcel.Close()
	}
	if j.elastic != nil {
		return f.inElastic(e, cfg, j)
	}
	g, err := engine.Join(e.ctx, cfg)
	if err != nil {
		return cannotError{err}
	}
	defer g.Close()
	return j.work(g)
}

// signature is a short form of the flags that ranks compare.
func signature(flags string) string {
	sum := sha256.Sum256([]byte(flags))
	return hex.EncodeToString(sum[:8])
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
		cfg.TLS, err = f.tls() // the ranks will want it
		return cfg, false, err
	case f.Ranks > 0 && f.Ranks != cfg.Size:
		return cfg, true, fmt.Errorf("-n %d, but %s has started %d ranks", f.Ranks, launcher, cfg.Size)
	default:
		found = true
	}
	if f.Meet != "" {
		cfg.Meet, err = f.Meet, nil
	}
	if f.Bind != "" {
		cfg.Bind = f.Bind
	}
	if f.Transport != "auto" {
		cfg.Transport = engine.Transport(f.Transport)
	}
	cfg.Conns, cfg.Timeout = f.Conns, f.Timeout
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
