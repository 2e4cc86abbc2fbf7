package query

import (
	"context"
	"io"

	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
)

// Health is how a node's own state is read: by busbar-gpu, which helper names or which is searched, or by nvidia-smi, and from the kernel's log.
func (p Programs) Health(host, helper string) *health.Sources {
	s := &health.Sources{Host: host, Kernel: p.Kernel}
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
				return err
			}
			return p.Run(ctx, checkLocalTime, []string{path, "-q", "-x"}, w)
		}
	}
	return s
}
