package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
	"busbar.dev/fleet"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

// PartArgument is the first argument of a program that an agent starts for a part, and no command for users; the
// interface and the folder of perftest's programs follow. See RunPart.
const PartArgument = "measure-part"

// Bounds of a child.
const (
	childGrace   = 2 * time.Second // to end what it started and to take leave of the other ranks
	childRoom    = 1 * unit.GiB    // beside the buffers of its part
	childReports = 4096            // more of them would choke the connection to the server
)

// Child is a command that does a part in a process of its own, by RunPart.
type Child []string

// ThisProgram is this program as a Child; its main must call RunPart. On Linux the path stands for the program that
// runs also when its file was replaced.
func ThisProgram(bind, perftest string) Child {
	self := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		self, _ = os.Executable() // "" cannot be started, which is said then
	}
	return Child{self, PartArgument, bind, perftest}
}

// report is a line that a child writes: how far it is, and at last what came of its part.
type report struct {
	Done     int             `json:"done"`
	Of       int             `json:"of"`
	Text     string          `json:"text,omitempty"`
	Ended    bool            `json:"ended,omitempty"`
	Measured *fleet.Measured `json:"measured,omitempty"`
}

// check refuses a report that is not about the part, and cleans its words.
func (r *report) check(p *fleet.Part) error {
	r.Text = short(texttab.Clean(r.Text), maxWords)
	m := r.Measured
	if m == nil {
		return nil
	}
	m.Failed = short(texttab.Clean(m.Failed), 1000)
	stranger := func(n fleet.Name) bool { return !slices.Contains(p.Ranks, n) }
	if m.Peer != "" && stranger(m.Peer) ||
		slices.ContainsFunc(m.Pairs, func(s fleet.PairSample) bool { return stranger(s.From) || stranger(s.To) }) {
		return errors.New("results of nodes that are not of the part")
	}
	for _, s := range m.Results {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// childSettings begin the variables that a child gets: where programs and libraries are, and what they heed. Nothing
// that the agent was trusted with is among them.
var childSettings = []string{
	"PATH=", "HOME=", "TMPDIR=", "LD_LIBRARY_PATH=", "CUDA_", "NVIDIA_", "NCCL_", "HIP_", "HSA_", "ROC", "RCCL_", "IBV_",
	"MLX", "RDMAV_",
}

// Measure is a Measurer. However the process ends, that is a result of the part, and the agent goes on.
func (c Child) Measure(ctx context.Context, p *fleet.Part, at func(int, int, string)) (*fleet.Measured, error) {
	task, err := fleet.Encode(p)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("this program does not measure")
	}
	child, err := ranks.Pipe(c, slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !ranks.LibrarySetting(v) &&
			!slices.ContainsFunc(childSettings, func(s string) bool { return strings.HasPrefix(v, s) })
	}))
	if err != nil {
		return nil, err
	}
	defer child.End(childGrace)
	defer context.AfterFunc(ctx, func() { child.End(childGrace) })()
	_, _ = child.Write(append(task, '\n')) // one that is gone says nothing either
	lines := bufio.NewScanner(child)
	lines.Buffer(nil, fleet.MaxBytes)
	for n := 0; lines.Scan(); n++ {
		r, err := fleet.Decode[report](lines.Bytes())
		if err == nil {
			err = r.check(p)
		}
		if n == childReports {
			err = fmt.Errorf("at most %d are expected", n)
		}
		switch {
		case err != nil:
			child.End(0)
			return nil, fmt.Errorf("the measurement's process was ended: its line %d is %.80q: %w", n+1, lines.Text(), err)
		case r.Ended:
			return r.Measured, nil
		}
		at(r.Done, r.Of, r.Text)
	}
	why := lines.Err()
	if child.End(childGrace); why == nil {
		why = child.Why()
	}
	return nil, fmt.Errorf("the measurement's process ended without a result: %w", why)
}

// RunPart does the part that standard input asks for, in a process of an agent's that ends with it, and ends when the
// agent is gone or closes standard input. by are other ways to measure than TCP between agents.
func RunPart(bind, version string, by map[fleet.Transport]Measurer) {
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadBytes('\n') // half of one is refused
	p, err := fleet.Decode[fleet.Part](line)
	if err == nil && p.Stop {
		err = errors.New("a part that is to be stopped")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "busbar: %s is for agents: a part is expected on standard input: %v\n", PartArgument, err)
		os.Exit(2)
	}
	need, _ := memoryOf(p) // it was checked
	debug.SetMemoryLimit(int64(need + childRoom/4))
	if p.What.By == fleet.NCCL {
		osdep.Confine(0) // CUDA maps what it likes
	} else {
		osdep.Confine(int64(2*need + childRoom))
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
		time.Sleep(childGrace)
		os.Exit(1)
	}()
	measure := by[p.What.By]
	if measure == nil {
		m := meter{bind: bind, version: version}
		measure = m.measure
	}
	end := report{Ended: true}
	end.Measured, err = measure(ctx, p, func(done, of int, text string) { report{Done: done, Of: of, Text: text}.write() })
	if err == nil {
		err = end.write()
	}
	if err != nil {
		report{Ended: true, Measured: failed(p, err)}.write()
	}
	os.Exit(0)
}

// write writes the line. That the agent is gone is noticed elsewhere.
func (r report) write() error {
	line, err := fleet.Encode(r)
	if err == nil {
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	return err
}

// failed is the outcome of a part that has none.
func failed(p *fleet.Part, err error) *fleet.Measured {
	m := &fleet.Measured{Failed: short(err.Error(), 1000)}
	var peer *engine.PeerError
	if errors.As(err, &peer) && peer.Rank >= 0 && peer.Rank < len(p.Ranks) {
		m.Peer = p.Ranks[peer.Rank]
	}
	return m
}
