package evidence

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/inspector"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/perftest"
	"busbar.dev/input/snapshot"
	"busbar.dev/internal/unpack"
	"busbar.dev/unit"
)

// maxMachine bounds an archive that is tried as a copy of a machine.
const maxMachine = 64 << 20

// whole gives the text at hand to the readers of whole formats, and returns how
// many knew it. What they cannot use is no error: most texts are logs.
func (r *Reader) whole() (formats int) {
	data := r.kept.Bytes()
	if len(bytes.TrimSpace(data)) == 0 {
		return 0
	}
	if r.measured(data) {
		return 1
	}
	if nccltests.Match(data) {
		if res, err := nccltests.ReadOutput(r.name, bytes.NewReader(data)); err == nil {
			for i := range res.Tables {
				r.set.Tables = append(r.set.Tables, Table{r.name, &res.Tables[i]})
			}
			formats++
		}
	}
	r.smiTable(data)
	if perftest.Match(data) {
		for _, t := range perftest.Read(data) {
			if best := t.Best(); best != nil && len(r.set.Figures) < maxFigures {
				q := finding.Quote{
					File: r.name, Line: best.Line, Text: strings.TrimSpace(t.Test + " " + t.Device + ": " + best.Text),
				}
				r.set.Figures = append(r.set.Figures, Figure{GBps: best.Rate.GBps(), Tool: "wire", Quote: short(q)})
			}
		}
		formats++
	}
	if inspector.MatchProm(data) {
		for _, m := range inspector.ReadProm(data) {
			if m.BusGBps > 0 && len(r.set.Figures) < maxFigures {
				q := finding.Quote{
					File: r.name, Line: int(m.Line), Text: fmt.Sprintf("%s of %s on %s of %s, %d ranks: bus bandwidth %.1f GB/s", m.Op,
						unit.Bytes(m.Low), m.GPU, m.Node, m.Ranks, m.BusGBps),
				}
				r.set.Figures = append(r.set.Figures, Figure{GBps: m.BusGBps, Tool: "nccl", Quote: short(q)})
			}
		}
		formats++
	}
	frags, err := input.ReadWithin(r.Budget, r.name, bytes.NewReader(data))
	if err != nil {
		return formats
	}
	for _, f := range frags {
		if f.Format == "NCCL log" || f.Format == nccltests.Format {
			continue // the log of all sources is read as one; see join
		}
		r.frags = append(r.frags, f)
		formats++
	}
	return formats
}

// join makes one cluster of all fragments.
func (r *Reader) join() {
	s := r.set
	frags := r.frags
	if len(frags) == 0 {
		return
	}
	c, err := cluster.JoinWithin(r.Budget, frags...)
	if err == nil {
		err = hardware.CompleteWithin(r.Budget, c)
	}
	if err == nil { // else they are too much together, or nobody waits
		s.Cluster = c
	}
}

// machine tries an archive as a copy of a machine's /sys and /proc, and gives the
// archive back to be read for texts too.
func (r *Reader) machine(name string, in io.Reader) (again io.Reader, done func()) {
	most := min(maxMachine, r.Budget.HoldLeft()/2)                    // its members need some too
	data, done, _ := unpack.Whole(r.Budget, io.LimitReader(in, most)) // who reads on meets the error again
	if f, err := snapshot.ReadWithin(r.Budget, name, bytes.NewReader(data)); err == nil && len(f.Types) > 0 {
		r.frags = append(r.frags, f)
		r.set.Sources = append(r.set.Sources, name)
		r.mute = true // nobody tells anything in there
	}
	return io.MultiReader(bytes.NewReader(data), in), done
}

// passedOver reports a member of a copy of /sys or /proc that is not for reading
// as a text.
func passedOver(member string) bool {
	if !strings.Contains(member, "/sys/") && !strings.Contains(member, "/proc/") && !strings.HasPrefix(member, "sys/") &&
		!strings.HasPrefix(member, "proc/") {
		return false
	}
	switch path.Base(member) {
	case "cmdline", "modules":
		return false
	}
	return true
}

// member reads a text. Members of archives that are no text are passed over.
func (r *Reader) member(f *unpack.File) error {
	if f.Path != "" {
		head, _ := f.Peek(1 << 14)
		if len(head) == 0 || passedOver(f.Path) || bytes.IndexByte(head, 0) >= 0 && !hang.Dump(head) {
			return nil
		}
	}
	return r.text(f.Name, f.Reader)
}
