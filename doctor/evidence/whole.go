package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"errors"
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
	"busbar.dev/unit"
)

// maxMembers and maxUnpacked bound an archive.
const (
	maxMembers  = 20000
	maxUnpacked = 8 << 30
	maxMachine  = 64 << 20
)

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

// packed reads compressed texts and archives; false when the source is neither.
func (r *Reader) packed(name string, in *bufio.Reader, depth int) (bool, error) {
	head, _ := in.Peek(512)
	var inner io.Reader
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(in)
		if err != nil {
			return true, fmt.Errorf("%s: begins like gzip and is not: %w", name, err)
		}
		inner = z
	case bytes.HasPrefix(head, []byte("BZh")):
		inner = bzip2.NewReader(in)
	case hang.RefuseXZ(head) != nil:
		return true, fmt.Errorf("%s: %w", name, hang.ErrXZ)
	case len(head) >= 263 && string(head[257:262]) == "ustar":
		return true, r.archive(name, r.machine(name, in), depth)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return true, fmt.Errorf("%s: a zip archive; unpack it and give the folder", name)
	default:
		return false, nil
	}
	if depth > 2 {
		return true, fmt.Errorf("%s: packed more than three times over", name)
	}
	b := bufio.NewReaderSize(unpacking{inner, name, r}, 1<<16)
	if again, err := r.packed(name, b, depth+1); again {
		return true, err
	}
	return true, r.text(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".bz2"), b)
}

// stopping is a source that ends when nobody waits for what it holds.
type stopping struct {
	io.Reader
	r *Reader
}

func (s stopping) Read(p []byte) (int, error) {
	if err := s.r.Budget.Stopped(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// unpacking counts what comes out of compressed sources: a few bytes may become very many.
type unpacking struct {
	io.Reader
	name string
	r    *Reader
}

func (u unpacking) Read(p []byte) (int, error) {
	if err := u.r.Budget.Stopped(); err != nil {
		return 0, err
	}
	n, err := u.Reader.Read(p)
	most := cmp.Or(u.r.Unpacked, maxUnpacked)
	if u.r.unpacked += int64(n); u.r.unpacked > most {
		return 0, fmt.Errorf("%s: more than %d MiB when unpacked; send the logs of a few ranks", u.name, most>>20)
	}
	return n, err
}

// machine tries an archive as a copy of a machine's /sys and /proc, and gives the
// archive back to be read for texts too.
func (r *Reader) machine(name string, in io.Reader) io.Reader {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(in, maxMachine+1))
	if err == nil && n <= maxMachine {
		if f, err := snapshot.Read(name, bytes.NewReader(b.Bytes())); err == nil && len(f.Types) > 0 {
			r.frags = append(r.frags, f)
			r.set.Sources = append(r.set.Sources, name)
			r.mute = true // nobody tells anything in there
		}
	}
	return io.MultiReader(&b, in)
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

// archive reads the texts of a tar file. Members that are no text are passed over.
func (r *Reader) archive(name string, in io.Reader, depth int) error {
	t := tar.NewReader(in)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w; copy it again", name, err)
		}
		if n >= maxMembers {
			return fmt.Errorf("%s: more than %d members; unpack it and give the folder of the logs", name, maxMembers)
		}
		if h.Typeflag != tar.TypeReg || h.Size == 0 || passedOver(h.Name) {
			continue
		}
		b := bufio.NewReaderSize(t, 1<<16)
		member := name + ":" + strings.TrimPrefix(path.Clean(h.Name), "./")
		if packed, err := r.packed(member, b, depth+1); packed {
			if err != nil {
				return err
			}
			continue
		}
		if head, _ := b.Peek(1 << 14); bytes.IndexByte(head, 0) >= 0 && !hang.Dump(head) {
			continue
		}
		if err := r.text(member, b); err != nil {
			return err
		}
	}
}
