package query

import (
	"context"
	"fmt"
	"io"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/internal/osdep"
)

// Health is how a node's own state is read: by busbar-gpu, which helper names or which is searched, or by nvidia-smi, and from the kernel's log.
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
			return p.Run(ctx, checkLocalTime, []string{path, "-q", "-x"}, w)
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
