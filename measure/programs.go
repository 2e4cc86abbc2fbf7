package measure

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/internal/osdep"
)

// Programs is how a measurement runs other programs.
type Programs struct {
	// Find is the path of a program: of one in a folder, or in PATH where the folder is empty.
	Find func(folder, name string) (path string, err error)
	// Run runs a program until it ends, for at most a time; w gets what it prints.
	Run func(ctx context.Context, limit time.Duration, args []string, w io.Writer) error
	// Worker starts a program that answers on its standard output what its standard input asks, with settings in its
	// environment.
	Worker func(args, settings []string) (device.Process, error)
	// Helper is where busbar-gpu is.
	Helper func() (string, error)
	// Ready is asked before the first program runs; nil: there is nothing to ask.
	Ready func() error
	// Sys is the machine's / of which sys is read; nil: nothing is known of its ports.
	Sys fs.FS
	// Alone keeps RDMA ports for one measurement at a time; nil: nobody asks.
	Alone *PortsAlone
	// Kernel is the kernel's log, and how long the machine is up; where it is refused, the journal and syslog's files are
	// read. nil: none is.
	Kernel func(ctx context.Context) (log []byte, up time.Duration, err error)
}

// Health is how a node's own state is read: by busbar-gpu, which helper names or which is searched, or by nvidia-smi,
// and from the kernel's log.
func (p Programs) Health(host, helper string) *health.Sources {
	s := &health.Sources{Host: host, Root: p.Sys, May: osdep.Writable}
	if p.Kernel != nil {
		s.Kernel = (&health.Kernel{Own: p.Kernel, Journal: p.journal(), Root: p.Sys, Now: time.Now}).Read
	}
	if p.Worker != nil && p.Helper != nil {
		s.Worker = func() (device.Process, error) {
			path := helper
			if path == "" {
				var err error
				if path, err = p.Helper(); err != nil {
					return nil, err
				}
			}
			return p.Worker([]string{path, "work"}, nil)
		}
	}
	if p.Find != nil && p.Run != nil {
		s.SMI = func(ctx context.Context, w io.Writer) error {
			path, err := p.Find("", "nvidia-smi")
			if err != nil {
				return fmt.Errorf("%w (%w)", err, health.ErrNone)
			}
			return p.Run(ctx, lookTime, []string{path, "-q", "-x"}, w)
		}
	}
	return s
}

// journal runs journalctl; nil where no programs are run.
func (p Programs) journal() func(context.Context, []string, io.Writer) error {
	if p.Find == nil || p.Run == nil {
		return nil
	}
	return func(ctx context.Context, args []string, w io.Writer) error {
		path, err := p.Find("", "journalctl")
		if err != nil {
			return err
		}
		return p.Run(ctx, journalTime, append([]string{path}, args...), w)
	}
}

// journalTime is how long journalctl may take to look through what it keeps.
const journalTime = 10 * time.Second

// lookTime is how long a node may take to look at itself.
const lookTime = 30 * time.Second
