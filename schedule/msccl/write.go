package msccl

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// Settings is what a file says and a schedule does not. The zero value serves calls of any size, in
// place and out of place, with the Simple protocol.
type Settings struct {
	Name  string // of the algorithm; "" is the schedule's
	Proto string // Simple, LL or LL128; "" is Simple
	// MinBytes and MaxBytes are the sizes that the file is for, as the reader counts them: all
	// ranks' blocks together. MaxBytes 0 is no limit. With one, the reader puts several chunks
	// into a message, and more schedules pass its short queues.
	MinBytes, MaxBytes int64
	// InPlace makes a file for calls in place only, which saves the copy of a rank's own block.
	InPlace bool
	// Rooted allows broadcast and reduce. The reader does not look at the root of a call, so that
	// such a file is right only where all calls have the schedule's root.
	Rooted bool
}

// Lower makes a schedule an algorithm file, or says why it cannot be one: which rank and lane
// need more than the reader takes. The file has been proven, as Prove does.
//
// A lane becomes a channel, and a thread block for every peer; a receive whose chunks are sent on at
// once is one instruction with the send. The input of a call is never written, unless the output
// is the same memory.
func Lower(s *schedule.Schedule, set Settings) (*Algo, error) {
	if s == nil || s.Program == nil {
		return nil, fmt.Errorf("no schedule; expected one with a program")
	}
	set.Name = cmp.Or(set.Name, s.Name)
	if len(set.Name) > maxName {
		return nil, fmt.Errorf("a name of %d bytes; the reader takes %d", len(set.Name), maxName)
	}
	switch set.Proto {
	case "":
		set.Proto = "Simple"
	case "Simple", "LL", "LL128":
	default:
		return nil, fmt.Errorf("protocol %q; expected Simple, LL or LL128", set.Proto)
	}
	if set.MinBytes < 0 || set.MaxBytes < 0 || set.MaxBytes > 0 && set.MinBytes > set.MaxBytes {
		return nil, fmt.Errorf("sizes from %d to %d bytes; expected the smaller one first", set.MinBytes, set.MaxBytes)
	}
	var first error
	for _, how := range []sharing{chains, apart, partners} {
		a, err := proven(s, set, how)
		if err == nil {
			return a, nil
		}
		if first == nil {
			first = err
		}
		// Another way to share blocks helps against circles of blocks that wait for room in the short
		// queues, and against waits that LL does not keep; not against limits.
		var unproven *unprovenError
		if !errors.As(err, &unproven) && !errors.Is(err, errSendWait) {
			break
		}
	}
	return nil, first
}

// unprovenError is the error of a file that fits and is not right.
type unprovenError struct {
	v   View
	err error
}

func (e *unprovenError) Error() string { return fmt.Sprintf("no file for %s: %v", e.v, e.err) }
func (e *unprovenError) Unwrap() error { return e.err }

// proven lowers a schedule and proves what comes out.
func proven(s *schedule.Schedule, set Settings, how sharing) (*Algo, error) {
	a, err := lower(s, set, how)
	if err != nil {
		return nil, err
	}
	views, err := a.Views()
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if v.Kind.Rooted() && v.Root != s.Root {
			continue
		}
		if err := a.prove(v); err != nil {
			return nil, &unprovenError{v, err}
		}
	}
	return a, nil
}

// word is the file's name of a collective, "" where it has none.
func word(kind coll.Kind) string {
	switch kind {
	case coll.AllReduce:
		return "allreduce"
	case coll.AllGather:
		return "allgather"
	case coll.ReduceScatter:
		return "reducescatter"
	case coll.AllToAll:
		return "alltoall"
	case coll.Broadcast:
		return "broadcast"
	case coll.Reduce:
		return "reduce"
	}
	return ""
}

// Write writes the file as it is.
func (a *Algo) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	flag := map[bool]int{true: 1}
	fmt.Fprintf(b, "<algo name=\"%s\" proto=\"%s\" nchannels=\"%d\" nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"%d\" maxBytes=\"%d\">\n",
		escape(a.Name), escape(a.Proto), a.Channels, a.ChunksPerLoop, a.NGPUs, escape(a.Coll), flag[a.InPlace], flag[a.OutOfPlace], a.MinBytes, a.MaxBytes)
	for i := range a.GPUs {
		g := &a.GPUs[i]
		fmt.Fprintf(b, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n", g.ID, g.Input, g.Output, g.Scratch)
		for j := range g.Blocks {
			t := &g.Blocks[j]
			fmt.Fprintf(b, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", t.ID, t.Send, t.Recv, t.Channel)
			for k := range t.Steps {
				s := &t.Steps[k]
				fmt.Fprintf(b, "      <step s=\"%d\" type=\"%s\" srcbuf=\"%s\" srcoff=\"%d\" dstbuf=\"%s\" dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
					s.Index, s.Op, s.Src, s.SrcOff, s.Dst, s.DstOff, s.Count, s.DepBlock, s.DepStep, flag[s.HasDep])
			}
			fmt.Fprintln(b, "    </tb>")
		}
		fmt.Fprintln(b, "  </gpu>")
	}
	fmt.Fprintln(b, "</algo>")
	return b.Flush()
}

// escape makes a text fit for an attribute.
func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "?"
	}
	return b.String()
}
