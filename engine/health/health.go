// Package health reads what a node's own drivers and kernel say is wrong with it: the state of its GPUs, through
// busbar-gpu or nvidia-smi where that is missing, and the errors of the driver in the kernel's log.
//
// It starts no program by itself: who uses it says how. The package is not promised: names may change between releases.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/engine/ranks"
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
	// Root is the machine's /, of which sys is read for AMD's GPUs and for what is on the PCI bus; nil: it is not.
	Root fs.FS
	// May tells whether this process may open a device file; nil: it may.
	May func(name string) error
	// Limit is how long everything may take, 0 for 20 s.
	Limit time.Duration
	// Kernel is the kernel's log, with lines as dmesg writes them, and how long the machine is up; nil: it is not read.
	Kernel func(ctx context.Context) (log []byte, up time.Duration, err error)
}

// Report is what was read.
type Report struct {
	By       string // busbar-gpu, nvidia-smi or amdgpu, empty where no GPU's state was read
	GPUs     []device.State
	Hidden   int // GPUs that a container or a job's limits keep from this process
	Findings []finding.Finding
	Notes    []string // what was not read, and why
}

// ErrNone is an answer of SMI: there is no such program.
var ErrNone = errors.New("not installed")

// Time limits of what is asked.
const (
	askTime = 20 * time.Second
	logTime = 6 * time.Second
	grace   = 3 * time.Second // for a program that is ended
	recent  = 24 * time.Hour  // how old an error in the kernel's log may be
)

func (s *Sources) limit() time.Duration { return cmp.Or(s.Limit, askTime) }

// Read asks all sources. A source that is missing is a note; a driver that does not answer where there are GPUs is a
// finding.
func (s *Sources) Read(whole context.Context) *Report {
	ctx, cancel := context.WithTimeout(whole, s.limit())
	defer cancel()
	a := s.within(ctx)
	r := &a.r
	bus := s.readBus()
	r.Hidden = bus.hidden
	r.Findings = device.Findings(s.Host, r.GPUs)
	switch {
	case a.err != nil:
		found := bus.silent(s, a.asked, ctx.Err() != nil && whole.Err() == nil, a.err)
		if r.Findings = append(r.Findings, found...); len(found) == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("GPUs were not checked: %v", a.err))
		}
	case r.By != "amdgpu":
		r.Findings = append(r.Findings, bus.missing(s.Host, r)...)
	}
	if s.Kernel != nil {
		// Where the driver hangs, the log says why.
		ctx, cancel := context.WithTimeout(whole, logTime)
		defer cancel()
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

// answer is what states says.
type answer struct {
	r     Report
	asked bool
	err   error
}

// stuck counts programs that wait within the driver and cannot be ended. An agent asks again and again, and each keeps
// a thread.
var stuck atomic.Int32

const mostStuck = 4

// within asks for states, and waits no longer than the context and a little for programs to end.
func (s *Sources) within(ctx context.Context) answer {
	if stuck.Load() >= mostStuck {
		<-ctx.Done()
		return answer{asked: true, err: fmt.Errorf("%d programs that were asked before still wait for the driver", mostStuck)}
	}
	came := make(chan answer)
	left := make(chan struct{})
	go func() {
		var a answer
		a.asked, a.err = s.states(ctx, &a.r)
		select {
		case came <- a:
		case <-left:
			stuck.Add(-1)
		}
	}()
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(min(grace, s.limit()), func() { close(late) }) })
	defer stop()
	select {
	case a := <-came:
		return a
	case <-late:
		stuck.Add(1)
		close(left)
		return answer{asked: true, err: context.Cause(ctx)}
	}
}

// states reads GPUs by busbar-gpu, and else from the files of AMD's driver or by nvidia-smi. asked tells that one of
// the programs was started.
func (s *Sources) states(ctx context.Context, r *Report) (asked bool, err error) {
	err = errors.New("no programs can be run here")
	if s.Worker != nil {
		if r.GPUs, err = s.ask(ctx); err == nil {
			r.By = "busbar-gpu"
			return true, nil
		}
	}
	if list := s.amd(); len(list) > 0 {
		r.GPUs, r.By = list, "amdgpu"
		return false, nil
	}
	if s.SMI == nil {
		return false, err
	}
	out := &ranks.Printed{Most: mostPrinted}
	failed := s.SMI(ctx, out)
	asked = !errors.Is(failed, ErrNone)
	list, bad := device.ReadSMI(out.Bytes())
	switch {
	case bad == nil:
		r.GPUs, r.By = list, "nvidia-smi"
		return true, nil
	case !asked:
	case ctx.Err() != nil:
		failed = context.Cause(ctx)
	case failed == nil:
		failed = bad
	case strings.Contains(out.String(), "NVIDIA-SMI"): // its own words: no driver, say
		line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		failed = errors.New(line[:min(len(line), 200)])
	}
	return asked, fmt.Errorf("%w; nor by nvidia-smi: %w", err, failed)
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

// mostPrinted is what is read of a program's output.
const mostPrinted = 16<<20 + 1

// xids are the errors of the hardware that the driver told of the last day, one finding for each GPU and code.
func xids(host string, log []byte, up time.Duration, gpus []device.State) []finding.Finding {
	type key struct {
		bus  string
		code int
	}
	type seen struct {
		n    int
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
		x.n, x.text = x.n+1, strings.ToValidUTF8(e.Text[:min(len(e.Text), 300)], "?")
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
			ID: fmt.Sprintf("gpu-xid-%d", k.code), Severity: finding.Error, Confidence: 1, Where: host + "/" + where,
			Nodes: []string{host},
			Text: fmt.Sprintf("%s of %s had Xid %d (%s) %s in the last 24 hours", name, host, k.code, text,
				words.Plural(x.n, "time")),
			Fix: "Drain the node; reset the GPU (nvidia-smi --gpu-reset) or reboot, and replace it where the error " +
				"returns.",
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
