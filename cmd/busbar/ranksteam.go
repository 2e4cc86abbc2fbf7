package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"busbar.dev/engine"
	"busbar.dev/internal/failure"
)

// team is the ranks that measure, as far as what is printed needs to know them.
type team interface {
	Rank() int
	Size() int
	Members() []engine.Member
	Hosts() []string
	Transport() engine.Transport
	Refused() map[engine.Refusal]int64
}

// crew is the members of an elastic job in one of its epochs.
type crew struct {
	*engine.Elastic
	v engine.View
}

func (c *crew) Rank() int                { return c.v.Rank }
func (c *crew) Size() int                { return c.v.Size }
func (c *crew) Members() []engine.Member { return c.v.Members }

func (c *crew) Hosts() (list []string) {
	for _, m := range c.v.Members {
		if !slices.Contains(list, m.Host) {
			list = append(list, m.Host)
		}
	}
	return list
}

// tls is what the flags say of it; nil without.
func (f *rankFlags) tls() (*tls.Config, error) {
	if f.TLSCert == "" && f.TLSKey == "" && f.TLSCA == "" {
		return nil, nil
	}
	if f.TLSCert == "" || f.TLSKey == "" || f.TLSCA == "" {
		return nil, errors.New("TLS needs all of --tls-cert, --tls-key and --tls-ca")
	}
	cfg, err := engine.LoadTLS(f.TLSCert, f.TLSKey, f.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return cfg, nil
}

// asElastic makes the configuration that of an elastic job. A process that is told where to
// meet, but not which rank it is, is a newcomer.
func (f *rankFlags) asElastic(cfg *engine.Config, found bool, least int) (bool, error) {
	if f.Transport == "mem" {
		return found, errors.New("--elastic needs ranks that can die by themselves; --transport mem has them all in one process")
	}
	cfg.MinSize = least
	if found || f.Meet == "" {
		return found, nil
	}
	if f.Ranks > 0 {
		return found, errors.New("-n and --meet without --rank: a newcomer to an elastic job takes --meet alone, a rank of its beginning takes all three")
	}
	cfg.Rank, cfg.Size, cfg.Meet = -1, 1, f.Meet
	return true, nil
}

// inElastic works as a member of an elastic job.
func (f *rankFlags) inElastic(e *env, cfg engine.Config, j job) error {
	x, err := engine.JoinElastic(e.ctx, cfg)
	if err != nil {
		return failure.Cannot(err)
	}
	defer x.Close()
	return j.elastic(x, cfg.Rank < 0)
}

// survivors is the verdict on the ranks of an elastic job: some may have been lost, if others
// came to the end.
func (f *flock) survivors(failed []error) error {
	ended := false
	for _, err := range failed {
		var exit *exec.ExitError
		ended = ended || err == nil
		if errors.As(err, &exit) && exit.ExitCode() == exitWrong {
			return errWrong
		}
	}
	if ended {
		return nil
	}
	return f.verdict(failed)
}

// shared lets several processes write to one place, whole lines each.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// elasticFlags are for jobs that go on when ranks are lost.
type elasticFlags struct {
	Elastic  bool `help:"Go on when ranks are lost, on those who are left, and let newcomers in (--elastic --meet, without --rank)."`
	MinRanks int  `name:"min-ranks" placeholder:"N" least:"1" help:"With --elastic: with fewer than these, give up; without it, one is enough."`
}

// refused says that a flag is there which means nothing without another.
func (f *elasticFlags) refused() error {
	if f.MinRanks > 0 && !f.Elastic {
		return errors.New("--min-ranks is for jobs that go on when ranks are lost; it needs --elastic")
	}
	return nil
}

// changeLine names who left and who joined, for the table.
func changeLine(c engine.Change) string { return "# " + strings.ReplaceAll(fmt.Sprint(c), "\n", " ") }
