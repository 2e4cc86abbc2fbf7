package flightrec

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/pickle"
	"busbar.dev/internal/lines"
)

// State is how far a collective came.
type State uint8

// The states of an entry, in their order.
const (
	Unknown State = iota
	Scheduled
	Started
	Completed
)

// states are the recorder's words.
var states = map[string]State{"scheduled": Scheduled, "started": Started, "completed": Completed}

// String is the recorder's word.
func (s State) String() string { return [...]string{"unknown", "scheduled", "started", "completed"}[s] }

// Entry is one collective or point-to-point operation that a rank launched.
type Entry struct {
	Record  int64 // counts a rank's entries over all groups
	Created int64 // ns since 1970, by the rank's clock; 0 is unknown
	Group   int32 // index into Set.Groups
	Seq     int32 // counts the collectives of a group from 1; of point-to-point operations their own
	Sig     int32 // index into Set.Sigs
	// index into Set.Frames: where the program launched it; 0 where it is completed or unknown
	Frame      int32
	DurationMs float32
	State      State
	P2P        bool
}

// Sig is what an operation is: ranks that take part in the same operation must have equal ones.
type Sig struct {
	Op     string // without the name of its library: all_reduce, _all_gather_base, broadcast, as the recorder names them
	Sizes  string // [64 512] -> [128 512]
	Dtypes string
	In     int64 // elements that go in
	Out    int64
}

// Group is a process group.
type Group struct {
	Name, Desc string
	Ranks      []int // global; nil where no dump lists them
}

// Dump is what one file says about one rank.
type Dump struct {
	Name    string          // of the file
	Rank    int             // -1 where neither the name nor the content gives it
	Entries []Entry         // by record, the newest maxEntries
	Member  []int32         // groups that this rank lists, by index
	Last    map[int32]int32 // a group's last launched number, from the status
	Thread  string          // the thread that launched the newest entry, as the recorder names it
}

// maxEntries are kept of a dump; a ring holds 2,000 by default.
const (
	maxEntries = 2048
	maxDims    = 64
	maxGroups  = 1 << 16
	maxRanks   = 1 << 20
	maxText    = 1 << 12
	maxListed  = 1 << 24
	maxKept    = 1 << 30
)

// Set holds the dumps of a job's ranks.
type Set struct {
	Dumps  []*Dump
	Groups []Group
	Sigs   []Sig
	Frames []string // 0 is ""

	ranks   map[string]int32 // index into lists, by the text of a list
	lists   [][]int          // 0 is none
	groups  map[string]int32
	sigs    map[string]int32
	frames  map[string]int32
	scratch []byte
	listed  int // ranks of all groups
	kept    int // bytes of texts
}

// ErrSeveral is wrapped by errors about files that hold more than one dump.
var ErrSeveral = pickle.ErrSeveral

// NewSet is an empty set.
func NewSet() *Set {
	return &Set{
		Frames: []string{""}, ranks: map[string]int32{"": 0}, lists: [][]int{nil}, groups: map[string]int32{},
		sigs: map[string]int32{}, frames: map[string]int32{},
	}
}

// Add reads one dump of either form.
func (s *Set) Add(name string, data []byte) error {
	read := pickle.Read
	if !pickle.Match(data) {
		read = pickle.ReadJSON
		if !MatchJSON(data) {
			return fmt.Errorf("%s: not a dump of the flight recorder; expected its pickle or its JSON", name)
		}
	}
	top, err := read(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d, err := s.dump(top)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.Name = name
	if d.Rank < 0 {
		d.Rank = RankOf(name)
	}
	s.Dumps = append(s.Dumps, d)
	return nil
}

// Match reports a dump of the recorder, or its beginning. Any pickle is taken for one, so that the reader can say what
// is wrong with it.
func Match(data []byte) bool {
	return pickle.Match(data) || MatchJSON(data) || len(data) > 0 && Torn("", data)
}

// MatchJSON reports the recorder's JSON, alone or in an answer of the worker server.
func MatchJSON(data []byte) bool {
	head := bytes.TrimSpace(data[:min(len(data), 1<<16)])
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	tail := data[max(0, len(data)-1<<16):]
	has := func(key string) bool { return lines.Has(head, key) || lines.Has(tail, key) }
	return has(`"pg_config"`) && has(`"version"`) || has(`"collective_seq_id"`) && has(`"profiling_name"`)
}

// Torn reports a pickle of the recorder that is cut off, by its first key words, or a dump that has nothing in it, by
// its name.
func Torn(name string, data []byte) bool {
	if len(data) == 0 {
		return strings.Contains(path.Base(name), "nccl_trace_rank")
	}
	if len(data) < 3 || data[0] != 0x80 || data[1] < 2 || data[1] > 5 || pickle.Match(data) {
		return false
	}
	head := data[:min(len(data), 1<<12)]
	return lines.Has(head, "version", "entries") || lines.HasAny(head, "pg_config", "collective_seq_id")
}

// rankList is the index of a list of ranks, [0, 1, 2], as pg_config has it. Texts of the same list are the same.
func (s *Set) rankList(text string) (int32, error) {
	if i, ok := s.ranks[text]; ok {
		return i, nil
	}
	var list []int
	if inside := strings.Trim(text, "[] \t\n"); inside != "" {
		list = make([]int, 0, 1+strings.Count(inside, ","))
		for part := range strings.SplitSeq(inside, ",") {
			n := num.Or(part, 0, maxRanks-1, -1)
			if n < 0 {
				return 0, fmt.Errorf("%.20q is not a rank", part)
			}
			list = append(list, n)
		}
	}
	i := int32(len(s.lists))
	s.lists = append(s.lists, list)
	s.ranks[strings.Clone(text)] = i
	return i, nil
}

// group is the index of a process group of that name, with the ranks that it lists where they are known. The same name
// with other ranks is another group.
func (s *Set) group(name, desc string, list int32) (int32, error) {
	s.scratch = strconv.AppendInt(append(append(s.scratch[:0], name...), 0), int64(list), 10)
	if g, ok := s.groups[string(s.scratch)]; ok {
		return g, nil
	}
	if len(s.Groups) >= maxGroups {
		return 0, fmt.Errorf("more than %d process groups", maxGroups)
	}
	if s.listed += len(s.lists[list]); s.listed > maxListed { // counted for each group: all of them are looked through
		return 0, fmt.Errorf("process groups list more than %d ranks", maxListed)
	}
	g := int32(len(s.Groups))
	s.Groups = append(s.Groups, Group{Name: clip(name), Desc: clip(desc), Ranks: s.lists[list]})
	s.groups[string(s.scratch)] = g
	return g, nil
}

// clip bounds a text that is kept.
func clip(s string) string { return strings.Clone(s[:min(len(s), maxText)]) }

// sig is the index of the signature of an entry.
func (s *Set) sig(f map[string]any) (int32, error) {
	name := word(f["profiling_name"])
	b := append(append(s.scratch[:0], name...), 0)
	b, numIn := sizes(b, f["input_sizes"])
	b, numOut := sizes(append(b, " -> "...), f["output_sizes"])
	shapes := len(b)
	b = dtypes(append(b, 0), f["input_dtypes"])
	b = dtypes(append(b, " -> "...), f["output_dtypes"])
	s.scratch = b
	if i, ok := s.sigs[string(b)]; ok {
		return i, nil
	}
	if s.kept += len(b); s.kept > maxKept {
		return 0, fmt.Errorf("more than %d MiB of operations that differ; give fewer dumps", maxKept>>20)
	}
	i := int32(len(s.Sigs))
	s.Sigs = append(s.Sigs, Sig{
		Op: clip(name[strings.IndexByte(name, ':')+1:]), Sizes: clip(string(b[len(name)+1 : shapes])),
		Dtypes: clip(string(b[shapes+1:])), In: numIn,
		Out: numOut,
	})
	s.sigs[string(b)] = i
	return i, nil
}

// frame is the index of a line of a program.
func (s *Set) frame(text string) int32 {
	if text == "" {
		return 0
	}
	text = text[:min(len(text), maxText)]
	if i, ok := s.frames[text]; ok {
		return i
	}
	i := int32(len(s.Frames))
	s.Frames = append(s.Frames, clip(text))
	s.frames[s.Frames[i]] = i
	return i
}
