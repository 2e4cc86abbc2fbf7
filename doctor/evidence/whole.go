package evidence

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"path"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/input"
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
	if r.plain > 0 && len(bytes.TrimSpace(data[r.plain:])) == 0 {
		if r.nccl { // its log is read
			return 0
		}
		data = data[:min(len(data), 1<<16)]
	}
	for _, k := range input.Find(data, input.Table|input.Health) {
		x, err := k.Read(r.Budget, r.name, data)
		if err != nil {
			continue
		}
		switch x := x.(type) {
		case []finding.Finding:
			r.health(x)
		case *nccltests.Output:
			for i := range x.Tables {
				r.set.Tables = append(r.set.Tables, Table{r.name, &x.Tables[i]})
			}
		case []perftest.Table:
			for _, t := range x {
				if best := t.Best(); best != nil {
					f := Figure{GBps: best.Rate.GBps(), Device: t.Device}
					if best.Size < 64*unit.KiB {
						f.Small = best.Size
					}
					r.figure(f, best.Line, strings.TrimSpace(t.Test+" "+t.Device+": "+best.Text))
				}
			}
		default:
			continue
		}
		formats++
	}
	frags, err := input.ReadWithin(r.Budget, r.name, bytes.NewReader(data))
	if err != nil {
		if n, ok := errors.AsType[input.Named](err); ok {
			r.set.Named = cmp.Or(r.set.Named, n.What)
		}
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

// figure files a rate that a tool printed.
func (r *Reader) figure(f Figure, line int, text string) {
	if len(r.set.Figures) < maxFigures {
		f.Quote = short(finding.Quote{File: r.name, Line: line, Text: text})
		r.set.Figures = append(r.set.Figures, f)
	}
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
		if len(head) == 0 || passedOver(f.Path) || bytes.IndexByte(head, 0) >= 0 &&
			len(input.Find(head, input.Dump)) == 0 {
			return nil
		}
	}
	return r.text(f.Name, f.Reader)
}
