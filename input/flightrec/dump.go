package flightrec

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"busbar.dev/input/internal/pickle"
	"busbar.dev/input/internal/pyframe"
)

// dump takes a dump in either form: what the watchdog and the pipe write, and what the worker server and
// _dump_nccl_trace_json return.
func (s *Set) dump(top pickle.Value) (*Dump, error) {
	r := &s.reader
	d := &Dump{Rank: -1}
	f := fields(r, top, dumpKeys)
	rank, groups, status, entries := f[0], f[1], f[2], f[3]
	if groups.Kind == pickle.None && entries.Kind == pickle.None {
		return nil, errors.New("no entries and process groups in it: not a dump of the flight recorder")
	}
	if n, ok := rank.Int(); ok && n >= 0 && n < maxRanks {
		d.Rank = int(n)
	}
	if err := s.config(d, groups); err != nil {
		return nil, err
	}
	list := r.Items(entries)
	list = list[max(0, len(list)-maxEntries):]
	d.Entries = make([]Entry, 0, len(list))
	x := &entryReader{set: s, r: r, dump: d, byID: map[int64]int32{}}
	for _, v := range list {
		if v.Kind != pickle.Dict {
			return nil, errors.New("an entry that is not a dictionary")
		}
		if err := x.entry(v); err != nil {
			return nil, err
		}
	}
	x.status(status)
	return d, r.Walked()
}

// keys are the places of a dictionary's fields in a list of their values, by name.
type keys map[string]int

var (
	dumpKeys   = keys{"rank": 0, "pg_config": 1, "pg_status": 2, "entries": 3}
	groupKeys  = keys{"name": 0, "desc": 1, "ranks": 2}
	frameKeys  = keys{"name": 0, "filename": 1, "line": 2}
	statusKeys = keys{"last_enqueued_collective": 0}
	entryKeys  = keys{
		"record_id": atRecord, "id": atRecord, "pg_id": atGroupID, "process_group": atGroup, "collective_seq_id": atSeq,
		"seq_id": atSeq, "p2p_seq_id": atP2PSeq, "profiling_name": atOp, "time_created_ns": atCreated,
		"duration_ms": atDuration, "state": atState, "is_p2p": atP2P, "input_sizes": atIn, "output_sizes": atOut,
		"input_dtypes": atInTypes, "output_dtypes": atOutTypes, "frames": atFrames, "thread_id": atThread,
	}
)

// The places of an entry's fields.
const (
	atRecord = iota
	atGroupID
	atGroup
	atSeq
	atP2PSeq
	atOp
	atCreated
	atDuration
	atState
	atP2P
	atIn
	atOut
	atInTypes
	atOutTypes
	atFrames
	atThread
	places
)

// fields are the values of a dictionary at the places of its keys, None where it has none.
func fields(r *pickle.Reader, v pickle.Value, of keys) (list [places]pickle.Value) {
	for k, v := range pairs(r, v) {
		if i, ok := of[string(r.Bytes(k))]; ok {
			list[i] = v
		}
	}
	return list
}

// word is a text as far as it is kept. A short pickle can stand for a long one many times.
func word(r *pickle.Reader, v pickle.Value) []byte {
	b := r.Bytes(v)
	return b[:min(len(b), maxText)]
}

// pairs are keys and values of a dictionary.
func pairs(r *pickle.Reader, v pickle.Value) func(yield func(k, v pickle.Value) bool) {
	return func(yield func(k, v pickle.Value) bool) {
		if v.Kind != pickle.Dict {
			return
		}
		items := r.Items(v)
		for i := 0; i+1 < len(items); i += 2 {
			if !yield(items[i], items[i+1]) {
				return
			}
		}
	}
}

// config reads the process groups that a rank belongs to.
func (s *Set) config(d *Dump, v pickle.Value) error {
	r := &s.reader
	lists := map[pickle.Value]int32{}
	for k, g := range pairs(r, v) {
		f := fields(r, g, groupKeys)
		name, ranks := word(r, k), f[2]
		if f[0].Kind == pickle.String {
			name = word(r, f[0])
		}
		list, ok := lists[ranks] // groups of one pickle may share the text of their ranks
		if !ok {
			var err error
			if list, err = s.rankList(rankText(r, ranks)); err != nil {
				return fmt.Errorf("process group %.40q: %w", name, err)
			}
			lists[ranks] = list
		}
		i, err := s.group(name, string(word(r, f[1])), list)
		if err != nil {
			return err
		}
		if len(d.Member) >= maxGroups {
			return errors.New("too many process groups")
		}
		d.Member = append(d.Member, i)
	}
	return nil
}

// rankText is the text [0, 1, 2], also of a list of numbers.
func rankText(r *pickle.Reader, v pickle.Value) []byte {
	text := r.Bytes(v)
	for _, rank := range r.Items(v) {
		text = fmt.Appendf(text, "%d,", number(r, rank))
	}
	return bytes.TrimSuffix(text, []byte(","))
}

// number is an integer, which some releases write as a text or a float.
func number(r *pickle.Reader, v pickle.Value) int64 {
	n, _ := v.Int()
	switch text := r.Bytes(v); {
	case v.Kind == pickle.Float:
		x, _ := v.Float()
		return int64(x)
	case len(text) > 0 && len(text) < 20 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9'):
		n, _ = strconv.ParseInt(string(text), 10, 64)
	}
	return n
}

// entryReader turns the entries of one dump into ours. What most entries repeat is looked up once: strings of a pickle
// that are the same stand at the same place.
type entryReader struct {
	set       *Set
	r         *pickle.Reader
	dump      *Dump
	byID      map[int64]int32 // groups by the number that the status uses
	last      pickle.Value    // the name of the group of the entry before
	lastGroup int32
	states    [8]struct {
		v pickle.Value
		s State
	}
}

func (x *entryReader) entry(v pickle.Value) (err error) {
	f := fields(x.r, v, entryKeys)
	n := func(at int) int64 { return number(x.r, f[at]) }
	duration, _ := f[atDuration].Float()
	e := Entry{
		Record: n(atRecord), Created: n(atCreated), Seq: int32(n(atSeq)), DurationMs: float32(duration),
		State: x.state(f[atState]), P2P: n(atP2P) != 0,
	}
	if e.P2P {
		e.Seq = int32(n(atP2PSeq))
	}
	var name [2]pickle.Value // and description
	copy(name[:], x.r.Items(f[atGroup]))
	if e.Group, err = x.group(name[0], name[1]); err != nil {
		return err
	}
	if f[atGroupID].Kind != pickle.None {
		x.byID[n(atGroupID)] = e.Group
	}
	if e.Sig, err = x.sig(f[atOp], f[atIn], f[atOut], f[atInTypes], f[atOutTypes]); err != nil {
		return err
	}
	if e.State != Completed {
		e.Frame = x.frame(f[atFrames])
	}
	if x.dump.Thread == "" {
		x.dump.Thread = string(word(x.r, f[atThread]))
	}
	x.dump.Entries = append(x.dump.Entries, e)
	return nil
}

// state is the recorder's word for how far an entry is.
func (x *entryReader) state(v pickle.Value) State {
	for i := range x.states {
		if pickle.SameText(x.states[i].v, v) {
			return x.states[i].s
		}
	}
	s := x.set.states[string(word(x.r, v))]
	for i := range x.states {
		if x.states[i].v.Kind == pickle.None {
			x.states[i].v, x.states[i].s = v, s
			break
		}
	}
	return s
}

// group is the group of an entry: the one of that name that this rank belongs to.
func (x *entryReader) group(name, desc pickle.Value) (int32, error) {
	if pickle.SameText(name, x.last) {
		return x.lastGroup, nil
	}
	text := word(x.r, name)
	for _, g := range x.dump.Member {
		if x.set.Groups[g].Name == string(text) {
			x.last, x.lastGroup = name, g
			return g, nil
		}
	}
	g, err := x.set.group(text, string(word(x.r, desc)), 0)
	if err == nil {
		x.dump.Member = append(x.dump.Member, g)
		x.last, x.lastGroup = name, g
	}
	return g, err
}

// sig is the signature of an entry.
func (x *entryReader) sig(op, in, out, inTypes, outTypes pickle.Value) (int32, error) {
	name := word(x.r, op)
	b := append(x.set.scratch[:0], name...)
	b = append(b, 0)
	b, numIn := x.sizes(b, in)
	b = append(b, " -> "...)
	b, numOut := x.sizes(b, out)
	b = append(b, 0)
	from := len(b)
	b = x.types(b, inTypes)
	b = append(b, " -> "...)
	b = x.types(b, outTypes)
	x.set.scratch = b
	return x.set.sig(func() Sig {
		return Sig{
			Op: opName(string(name)), Sizes: clip(string(b[len(name)+1 : from-1])), Dtypes: clip(string(b[from:])), In: numIn,
			Out: numOut,
		}
	})
}

// sizes writes the shapes of tensors and counts their elements.
func (x *entryReader) sizes(b []byte, v pickle.Value) ([]byte, int64) {
	var sum int64
	end := len(b) + maxText
	for i, shape := range x.r.Items(v) {
		if i >= maxDims || len(b) > end {
			b = append(b, "..."...)
			break
		}
		n := int64(1)
		b = append(b, '[')
		for j, dim := range x.r.Items(shape) {
			if j >= maxDims {
				break
			}
			if j > 0 {
				b = append(b, ' ')
			}
			d, _ := dim.Int()
			b = strconv.AppendInt(b, d, 10)
			n = times(n, d)
		}
		b = append(b, ']')
		sum += n
	}
	return b, sum
}

// times multiplies sizes that somebody else wrote.
func times(a, b int64) int64 {
	const most = 1 << 50
	if b < 0 || b != 0 && a > most/b {
		return most
	}
	return a * b
}

func (x *entryReader) types(b []byte, v pickle.Value) []byte {
	for i, t := range x.r.Items(v) {
		if i >= maxDims {
			break
		}
		if i > 0 {
			b = append(b, ' ')
		}
		name := x.r.Bytes(t)
		b = append(b, name[:min(len(name), 32)]...)
	}
	return b
}

// frame is where the program launched a collective.
func (x *entryReader) frame(v pickle.Value) int32 {
	var by launchedBy
	for i, f := range x.r.Items(v) {
		if i >= maxDims || by.origin == pyframe.Own {
			break
		}
		f := fields(x.r, f, frameKeys)
		by.see(string(word(x.r, f[0])), string(word(x.r, f[1])), number(x.r, f[2]))
	}
	return x.set.frame(by.text)
}

// status keeps the last number that the status gives for a group, which a ring that wrapped may not show.
func (x *entryReader) status(v pickle.Value) {
	for k, st := range pairs(x.r, v) {
		id, err := strconv.ParseInt(string(x.r.Bytes(k)), 10, 64)
		if err != nil {
			continue
		}
		if last := fields(x.r, st, statusKeys)[0]; last.Kind != pickle.None {
			x.dump.keepLast(x.byID, id, number(x.r, last))
		}
	}
}

// keepLast notes a group's last number, where an entry says which group that is.
func (d *Dump) keepLast(byID map[int64]int32, id, seq int64) {
	g, ok := byID[id]
	if !ok || seq < 0 || seq >= 1<<31 || len(d.Last) >= maxGroups {
		return
	}
	if d.Last == nil {
		d.Last = map[int32]int32{}
	}
	d.Last[g] = int32(seq)
}
