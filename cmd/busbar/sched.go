package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/texttab"
	"busbar.dev/schedule"
	"busbar.dev/schedule/msccl"
	"busbar.dev/unit"
)

type schedCmd struct {
	common
	File     string    `arg:"" optional:"" help:"An MSCCL algorithm file, - for standard input. None: the schedule of --op by --algo."`
	List     bool      `help:"List the algorithms, the collectives that each does and what it needs."`
	Op       string    `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, …"`
	Algo     string    `default:"ring" help:"The algorithm's name (--list)."`
	Ranks    int       `short:"n" name:"ranks" default:"8" help:"How many ranks."`
	Root     int       `help:"The root of broadcast, reduce, gather, scatter."`
	Channels int       `default:"1" help:"Parts of the data that go side by side."`
	Pieces   int       `default:"4" help:"Messages that a chain or tree cuts a channel's data into."`
	Groups   string    `placeholder:"SIZE|LIST" help:"Ranks that are close to each other: 4 is groups of four, 0-3/4-7 names them."`
	Inner    string    `placeholder:"ALGO" help:"hierarchical, inside a group: ring, direct, nvls."`
	Outer    string    `placeholder:"ALGO" help:"hierarchical, across groups: ring, tree, halving_doubling, rabenseifner, collnet."`
	Check    bool      `help:"Prove it and print no program; exit 1 when it is wrong."`
	Output   string    `short:"o" placeholder:"FORMAT" help:"text (as without it), msccl or json on standard output; FORMAT=FILE writes to a file, and so does a file name that ends in .txt, .xml or .json. With --json a file is written and the document printed."`
	Proto    protoWord `enum:"auto,simple,ll,ll128" default:"auto" help:"msccl: the protocol: simple, ll or ll128. auto is simple."`
	Min      string    `name:"min-size" placeholder:"SIZE" help:"msccl: the smallest call that the file is for, of all ranks' blocks together."`
	Max      string    `name:"max-size" placeholder:"SIZE" help:"msccl: the greatest; the reader then puts more into a message."`
	InPlace  bool      `help:"msccl: for calls in place only, without the copy of a rank's own block."`
	Rooted   bool      `help:"msccl: allow broadcast and reduce; the reader uses such a file for calls with any root."`
}

// Help says who reads the files and ends with examples.
func (schedCmd) Help() string {
	return "Prints the program of a collective, every op of every rank and lane; proves it; or writes it as MSCCL algorithm XML. " +
		"NCCL itself reads no such XML: RCCL and Microsoft's MSCCL do (from the folder in MSCCL_ALGO_DIR). " +
		"Their reader has limits (64 steps a thread block, 64 thread blocks a GPU); a schedule that does not fit is refused with its rank and lane (exit 3). " +
		"With a FILE, shows or proves somebody else's algorithm.\n\n" +
		"Examples:\n" +
		"  busbar sched --list\n" +
		"  busbar sched --op all_reduce --algo ring -n 4\n" +
		"  busbar sched --op all_reduce --algo hierarchical -n 16 --groups 8 --check\n" +
		"  busbar sched --op all_gather --algo bruck -n 8 -o msccl=allgather.xml\n" +
		"  busbar sched allgather.xml --check\n" +
		"  busbar sched docs/examples/allgather2.xml"
}

// Run lists, shows, proves or writes.
func (c *schedCmd) Run(e *env) error {
	if c.List {
		return c.list(e)
	}
	if c.File != "" {
		return c.file(e)
	}
	s, err := c.build()
	if err != nil {
		return err
	}
	format, file, err := c.format()
	if err != nil {
		return err
	}
	if c.Check {
		if format == "msccl" {
			return fmt.Errorf("-o msccl writes what has been proven; run it without --check")
		}
		return c.check(e, format, file, s)
	}
	return c.write(e, format, file, func(w io.Writer, format string) error {
		switch format {
		case "msccl":
			return c.msccl(w, s)
		case "json":
			return printSchedule(w, s)
		}
		return printText(w, s)
	})
}

// format is what to write and where; no file is standard output.
func (c *schedCmd) format() (format, file string, err error) {
	format = c.Output
	if f, name, ok := strings.Cut(format, "="); ok {
		format, file = f, name
	}
	switch format {
	case "text", "json", "msccl":
	case "", "-":
		if format, file = "text", ""; c.JSON {
			format = "json"
		}
	default:
		file = c.Output
		format = map[string]string{".txt": "text", ".xml": "msccl", ".json": "json"}[strings.ToLower(filepath.Ext(c.Output))]
		if format == "" {
			return "", "", fmt.Errorf("-o %s: expected text, msccl or json (FORMAT=FILE writes to a file), or a file name that ends in .txt, .xml or .json", c.Output)
		}
	}
	if isStdout(file) {
		file = ""
	}
	if c.JSON && file == "" && format != "json" {
		return "", "", fmt.Errorf("--json and -o %s both want standard output; take one of them, or write to a file: -o %s=FILE", c.Output, format)
	}
	return format, file, nil
}

// write sends the result to standard output or to a file, which is there only when all went well;
// with --json to both.
func (c *schedCmd) write(e *env, format, file string, f func(w io.Writer, format string) error) error {
	if file == "" {
		return f(e.stdout, format)
	}
	if err := e.writeFile(file, func(w io.Writer) error { return f(w, format) }); err != nil || !c.JSON {
		return err
	}
	return f(e.stdout, "json")
}

// build makes the schedule that the flags describe.
func (c *schedCmd) build() (*schedule.Schedule, error) {
	kind, err := coll.ParseKind(c.Op)
	if err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	b, err := schedule.Find(c.Algo)
	if err != nil {
		return nil, fmt.Errorf("--algo: %w", err)
	}
	switch { // 0 would be the builder's own number
	case c.Channels < 1:
		return nil, fmt.Errorf("--channels %d; expected at least 1", c.Channels)
	case c.Pieces < 1:
		return nil, fmt.Errorf("--pieces %d; expected at least 1", c.Pieces)
	}
	p := schedule.Params{Ranks: c.Ranks, Root: c.Root, Channels: c.Channels, Pieces: c.Pieces, Inner: c.Inner, Outer: c.Outer}
	if c.Groups != "" {
		if p.Groups, err = parseGroups(c.Groups, c.Ranks); err != nil {
			return nil, fmt.Errorf("--groups %s: %w", c.Groups, err)
		}
	} else if b.Needs == "groups" {
		return nil, fmt.Errorf("%s needs --groups: 4 for groups of four ranks, 0-3/4-7 to name them", b.Name)
	}
	return b.Build(kind, p)
}

// parseGroups reads 4, or 0-3/4-7, or 0,2/1,3.
func parseGroups(text string, ranks int) ([][]int, error) {
	var groups [][]int
	if size, err := strconv.Atoi(text); err == nil {
		switch {
		case ranks < 1 || ranks > 1<<24:
			return nil, fmt.Errorf("%d ranks to put into groups; 1 to %d are possible", ranks, 1<<24)
		case size < 1 || size > ranks:
			return nil, fmt.Errorf("groups of %d ranks; expected 1 to %d, as many as there are", size, ranks)
		case ranks%size != 0:
			return nil, fmt.Errorf("%d ranks are not a whole number of groups of %d; name uneven groups: 0-%d/%d-%d", ranks, size, size-1, size, ranks-1)
		}
		for r := 0; r < ranks; r++ {
			if r%size == 0 {
				groups = append(groups, nil)
			}
			groups[r/size] = append(groups[r/size], r)
		}
		return groups, nil
	}
	for _, part := range strings.Split(text, "/") {
		var g []int
		for _, span := range strings.Split(part, ",") {
			first, last, ok := strings.Cut(span, "-")
			if !ok {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from < 0 || to < from || to >= ranks {
				return nil, fmt.Errorf("%q; expected ranks from 0 to %d, as 0-3/4-7", span, ranks-1)
			}
			for r := from; r <= to; r++ {
				g = append(g, r)
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// msccl writes the algorithm file.
func (c *schedCmd) msccl(w io.Writer, s *schedule.Schedule) error {
	if s.Kind.Rooted() && !c.Rooted {
		return fmt.Errorf("-o msccl: the reader does not look at a call's root: a %s written for root %d would also run for other roots, and go wrong; --rooted allows it where there are none", s.Kind, s.Root)
	}
	set := msccl.Settings{Proto: map[string]string{"ll": "LL", "ll128": "LL128"}[string(c.Proto)], InPlace: c.InPlace, Rooted: c.Rooted}
	for _, x := range []struct {
		name, text string
		to         *int64
	}{{"--min-size", c.Min, &set.MinBytes}, {"--max-size", c.Max, &set.MaxBytes}} {
		if x.text == "" {
			continue
		}
		n, err := unit.ParseBytes(x.text)
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		*x.to = int64(n)
	}
	if set.MaxBytes > 0 && set.MinBytes > set.MaxBytes {
		return fmt.Errorf("--min-size %s is more than --max-size %s", c.Min, c.Max)
	}
	a, err := msccl.Lower(s, set)
	if err != nil {
		return failure.Cannot(fmt.Errorf("-o msccl: %w", err))
	}
	return a.Write(w)
}

// check proves a built schedule.
func (c *schedCmd) check(e *env, format, file string, s *schedule.Schedule) error {
	if opsBeyond(s, maxProven) {
		return failure.Cannot(fmt.Errorf("more than %d ops take too long to prove; check fewer ranks, channels or pieces: the programs are alike", maxProven))
	}
	done := e.later(c.common, "proving")
	err := s.Check()
	done()
	if undecided(err) {
		return failure.Cannot(err)
	}
	werr := c.write(e, format, file, func(w io.Writer, format string) error {
		if format == "json" {
			return writeIndented(w, schedJSON{Schedule: headOf(s), Check: verdict(err, nil)})
		}
		if err != nil {
			_, werr := fmt.Fprintf(w, "%s\nwrong: %v\n", s, err)
			return werr
		}
		_, werr := fmt.Fprintf(w, "%s\nproven: every rank ends with the right result, and no lane waits for ever\n%d messages one after the other on the longest chain\n", s, s.Rounds())
		return werr
	})
	if werr == nil && err != nil {
		return errWrong
	}
	return werr
}

// undecided reports whether a proof could not be tried, which says nothing about its subject.
func undecided(err error) bool {
	var fault *schedule.Fault
	var other *msccl.Undecided
	return errors.As(err, &fault) && fault.Class == schedule.TooBig || errors.As(err, &other)
}

// columns of the list, in the order of the collectives.
var columns = []struct {
	head string
	kind coll.Kind
}{
	{"AR", coll.AllReduce},
	{"RS", coll.ReduceScatter},
	{"AG", coll.AllGather},
	{"B", coll.Broadcast},
	{"R", coll.Reduce},
	{"A2A", coll.AllToAll},
	{"A2AV", coll.AllToAllV},
	{"G", coll.Gather},
	{"S", coll.Scatter},
	{"SR", coll.SendRecv},
	{"HC", coll.Hypercube},
	{"BAR", coll.Barrier},
}

// list prints the table of algorithms and collectives.
func (c *schedCmd) list(e *env) error {
	format, file, err := c.format()
	if err != nil {
		return err
	}
	if format == "msccl" {
		return fmt.Errorf("--list and -o %s: a list is text or json", c.Output)
	}
	return c.write(e, format, file, func(w io.Writer, format string) error { return c.listTo(e, w, format) })
}

func (c *schedCmd) listTo(e *env, w io.Writer, format string) error {
	builders := schedule.Builders()
	if format == "json" {
		type row struct {
			Name  string      `json:"name"`
			Does  string      `json:"does"`
			Ops   []coll.Kind `json:"ops"`
			Needs string      `json:"needs,omitempty"`
		}
		rows := []row{}
		for _, b := range builders {
			rows = append(rows, row{b.Name, b.Does, b.Kinds, needs(b)})
		}
		return writeIndented(w, map[string]any{"algorithms": rows})
	}
	t := texttab.Table{Columns: []texttab.Column{{Head: "name"}}}
	var words []string
	for _, k := range columns {
		t.Columns = append(t.Columns, texttab.Column{Head: k.head})
		words = append(words, k.head+" "+k.kind.String())
	}
	t.Columns = append(t.Columns, texttab.Column{Head: "needs"})
	if c.Verbose {
		t.Columns = append(t.Columns, texttab.Column{Head: "what it is"})
	} else {
		words = append(words, "what each is: -v")
	}
	for _, b := range builders {
		row := []string{b.Name}
		for _, k := range columns {
			mark := "·"
			if slices.Contains(b.Kinds, k.kind) {
				mark = "x"
			}
			row = append(row, mark)
		}
		row = append(row, needs(b))
		if c.Verbose {
			row = append(row, b.Does)
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range texttab.Flow(words, ", ", max(e.text(w, common{}).Width, 98)) {
		fmt.Fprintln(w, line)
	}
	return nil
}

// needs is what an algorithm asks for; those that compute in a switch need one.
func needs(b schedule.Builder) string {
	all := b.Needs
	if s, err := b.Build(b.Kinds[0], schedule.Params{Ranks: 4, Groups: [][]int{{0, 1}, {2, 3}}}); err == nil && len(s.Switches) > 0 {
		if all != "" {
			all += ", "
		}
		all += "a switch that computes (" + s.Switches[0].Kind.String() + ")"
	}
	return all
}

// openAlgo reads an algorithm file.
func (e *env) openAlgo(name string) (*msccl.Algo, error) {
	if name == "-" {
		return msccl.Read("standard input", e.stdin)
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file; expected an MSCCL algorithm file, or --op and --algo", name)
	case err != nil:
		return nil, failure.Cannot(err)
	}
	defer f.Close()
	return msccl.Read(name, f)
}
