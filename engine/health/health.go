// Package health reads what a node's own drivers and kernel say is wrong with it: the state of its GPUs, through busbar-gpu or nvidia-smi where
// that is missing, and the errors of the driver in the kernel's log.
//
// It starts no program by itself: who uses it says how. The package is not promised: names may change between releases.
package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/input/joblog"
	"busbar.dev/internal/words"
)

// Sources are where a node's state is read.
type Sources struct {
	Host string
	// Worker starts busbar-gpu; nil, or an error: there is none.
	Worker func() (device.Process, error)
	// SMI runs nvidia-smi -q -x; nil: there is none.
	SMI func(ctx context.Context, w io.Writer) error
	// Root is the machine's /, of which sys is read for AMD's GPUs; nil: it is not.
	Root fs.FS
	// Kernel is the kernel's log, with lines as dmesg writes them, and how long the machine is up; nil: it is not read.
	Kernel func(ctx context.Context) (log []byte, up time.Duration, err error)
}

// Report is what was read.
type Report struct {
	By       string // busbar-gpu, nvidia-smi or amdgpu, empty where no GPU's state was read
	GPUs     []device.State
	Findings []finding.Finding
	Notes    []string // what was not read, and why
}

// Time limits of what is asked.
const (
	askTime = 20 * time.Second
	recent  = 24 * time.Hour // how old an error in the kernel's log may be
)

// Read asks all sources. A source that is missing is a note.
func (s *Sources) Read(ctx context.Context) *Report {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r := &Report{}
	if err := s.states(ctx, r); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("GPUs were not checked: %v", err))
	}
	r.Findings = device.Findings(s.Host, r.GPUs)
	if s.Kernel != nil {
		log, up, err := s.Kernel(ctx)
		switch {
		case err == nil:
			r.Findings = append(r.Findings, xids(s.Host, log, up, r.GPUs)...)
		case len(r.GPUs) > 0:
			r.Notes = append(r.Notes, fmt.Sprintf("Xid errors were not looked for: %v", err))
		}
	}
	return r
}

// states reads GPUs by busbar-gpu, and else from the files of AMD's driver or by nvidia-smi.
func (s *Sources) states(ctx context.Context, r *Report) error {
	err := errors.New("no programs can be run here")
	if s.Worker != nil {
		if r.GPUs, err = s.ask(ctx); err == nil {
			r.By = "busbar-gpu"
			return nil
		}
	}
	if list := s.amd(); len(list) > 0 {
		r.GPUs, r.By = list, "amdgpu"
		return nil
	}
	if s.SMI == nil {
		return err
	}
	out := &limited{}
	failed := s.SMI(ctx, out)
	list, bad := device.ReadSMI(out.Bytes())
	switch {
	case bad == nil:
		r.GPUs, r.By = list, "nvidia-smi"
		return nil
	case ctx.Err() != nil:
		failed = context.Cause(ctx)
	case failed == nil:
		failed = bad
	case strings.Contains(out.String(), "NVIDIA-SMI"): // its own words: no driver, say
		line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		failed = errors.New(line[:min(len(line), 200)])
	}
	return fmt.Errorf("%w; nor by nvidia-smi: %w", err, failed)
}

// amd reads AMD's GPUs from the driver's files.
func (s *Sources) amd() []device.State {
	if s.Root == nil {
		return nil
	}
	return device.ReadAMD(s.Root)
}

func (s *Sources) ask(ctx context.Context) ([]device.State, error) {
	p, err := s.Worker()
	if err != nil {
		return nil, err
	}
	w, err := device.NewWorker(ctx, 0, p)
	if err != nil {
		return nil, err
	}
	defer w.End()
	a, err := w.Ask(ctx, device.Request{Do: device.Health})
	return a.Health, err
}

// limited keeps the beginning of what a program prints.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	const most = 16<<20 + 1
	l.Buffer.Write(p[:min(len(p), most-min(l.Len(), most))])
	return len(p), nil
}

// xids are the errors of the hardware that the driver told of the last day, one finding for each GPU and code.
func xids(host string, log []byte, up time.Duration, gpus []device.State) []finding.Finding {
	type key struct {
		bus  string
		code int
	}
	type seen struct {
		n    int
		last time.Duration // since the machine started
		text string
	}
	all := map[key]*seen{}
	var order []key
	for _, e := range joblog.Read("kernel", log).Events {
		_, hardware := joblog.XidMeaning(e.Code)
		at, dated := sinceStart(e.Text)
		if e.Kind != joblog.Xid || !hardware || dated && up-at > recent {
			continue
		}
		k := key{e.Bus, e.Code}
		if all[k] == nil {
			all[k] = &seen{}
			order = append(order, k)
		}
		x := all[k]
		x.n, x.last, x.text = x.n+1, at, strings.ToValidUTF8(e.Text[:min(len(e.Text), 300)], "?")
	}
	var list []finding.Finding
	for _, k := range order[:min(len(order), 64)] {
		x := all[k]
		text, _ := joblog.XidMeaning(k.code)
		name, where := "the GPU at "+k.bus, k.bus
		for _, g := range gpus {
			if samePCI(g.PCI, k.bus) {
				name, where = fmt.Sprintf("GPU %d", g.Index), fmt.Sprintf("gpu%d", g.Index)
			}
		}
		f := finding.Finding{
			ID: fmt.Sprintf("gpu-xid-%d", k.code), Severity: finding.Error, Confidence: 1, Where: host + "/" + where, Nodes: []string{host},
			Text:     fmt.Sprintf("%s of %s had Xid %d (%s) %s in the last 24 hours", name, host, k.code, text, words.Plural(x.n, "time")),
			Fix:      "Drain the node; reset the GPU (nvidia-smi --gpu-reset) or reboot, and replace it where the error returns.",
			Evidence: []finding.Quote{{File: "kernel log", Text: x.text}},
		}
		if k.code == 63 || k.code == 74 || k.code == 94 { // contained, or of a link that may have recovered
			f.Severity = finding.Warn
		}
		list = append(list, f)
	}
	return list
}

// sinceStart is the time of a line of the kernel's log: [   93.591797] NVRM: …
func sinceStart(line string) (time.Duration, bool) {
	var seconds float64
	i := strings.IndexByte(line, '[')
	if i < 0 {
		return 0, false
	}
	if n, err := fmt.Sscanf(line[i:], "[%f]", &seconds); n != 1 || err != nil || seconds < 0 || seconds > 1e10 {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// samePCI compares addresses that may have a longer domain, and no function.
func samePCI(a, b string) bool {
	plain := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), ".")
		return strings.TrimLeft(s, "0")
	}
	return a != "" && plain(a) == plain(b)
}
