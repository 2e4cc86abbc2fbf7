package flightrec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/input/internal/pyframe"
)

// dump takes a dump in either form: what the watchdog and the pipe write, and what the worker server and
// _dump_nccl_trace_json return.
func (s *Set) dump(top any) (*Dump, error) {
	all := dict(top)
	if all["pg_config"] == nil && all["entries"] == nil {
		return nil, errors.New("no entries and process groups in it: not a dump of the flight recorder")
	}
	d := &Dump{Rank: -1}
	if n := number(all["rank"]); all["rank"] != nil && n >= 0 && n < maxRanks {
		d.Rank = int(n)
	}
	x := &entryReader{set: s, dump: d, member: map[string]int32{}, byID: map[string]int32{}}
	if err := x.config(dict(all["pg_config"])); err != nil {
		return nil, err
	}
	list := items(all["entries"])
	list = list[max(0, len(list)-maxEntries):]
	d.Entries = make([]Entry, 0, len(list))
	for _, v := range list {
		e := dict(v)
		if e == nil {
			return nil, errors.New("an entry that is not a dictionary")
		}
		if err := x.entry(e); err != nil {
			return nil, err
		}
	}
	x.status(dict(all["pg_status"]))
	return d, nil
}

// What a value is, of a pickle as of JSON; the zero value where it is something else.

func dict(v any) map[string]any {
	if d, ok := v.(*map[string]any); ok {
		return *d
	}
	d, _ := v.(map[string]any)
	return d
}

func items(v any) []any {
	if list, ok := v.(*[]any); ok {
		return *list
	}
	list, _ := v.([]any)
	return list
}

// word is a text as far as it is kept: a short pickle can stand for a long one many times.
func word(v any) string {
	s, _ := v.(string)
	return s[:min(len(s), maxText)]
}

// number is an integer, which some releases write as a text or a float.
func number(v any) (n int64) {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case bool:
		if v {
			n = 1
		}
	case string:
		n, _ = strconv.ParseInt(v[:min(len(v), 20)], 10, 64)
	case json.Number:
		var err error
		if n, err = v.Int64(); err != nil {
			x, _ := v.Float64()
			n = int64(x)
		}
	}
	return n
}

// entryReader turns what one dump holds into ours.
type entryReader struct {
	set    *Set
	dump   *Dump
	member map[string]int32 // groups that this rank belongs to, by name
	byID   map[string]int32 // groups by the number that the status uses
}

// config reads the process groups that a rank belongs to.
func (x *entryReader) config(groups map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := dict(groups[key])
		name := word(key)
		if text, ok := g["name"].(string); ok {
			name = word(text)
		}
		ranks, _ := g["ranks"].(string)
		list, err := x.set.rankList(ranks)
		if err != nil {
			return fmt.Errorf("process group %.40q: %w", name, err)
		}
		if err := x.join(name, word(g["desc"]), list); err != nil {
			return err
		}
	}
	return nil
}

// join notes a group that this rank belongs to.
func (x *entryReader) join(name, desc string, list int32) error {
	g, err := x.set.group(name, desc, list)
	switch {
	case err != nil:
		return err
	case len(x.dump.Member) >= maxGroups:
		return errors.New("too many process groups")
	}
	x.dump.Member = append(x.dump.Member, g)
	if _, ok := x.member[name]; !ok {
		x.member[name] = g
	}
	return nil
}

func (x *entryReader) entry(f map[string]any) error {
	e := Entry{
		Record: number(f["record_id"]), Created: number(f["time_created_ns"]), Seq: int32(number(f["collective_seq_id"])),
		State: states[word(f["state"])], P2P: number(f["is_p2p"]) != 0,
	}
	switch ms := f["duration_ms"].(type) {
	case float64:
		e.DurationMs = float32(ms)
	case json.Number:
		x, _ := ms.Float64()
		e.DurationMs = float32(x)
	}
	if e.P2P {
		e.Seq = int32(number(f["p2p_seq_id"]))
	}
	var name [2]any // and description
	copy(name[:], items(f["process_group"]))
	group := word(name[0])
	if _, ok := x.member[group]; !ok {
		if err := x.join(group, word(name[1]), 0); err != nil {
			return err
		}
	}
	e.Group = x.member[group]
	if id := f["pg_id"]; id != nil {
		x.byID[strconv.FormatInt(number(id), 10)] = e.Group
	}
	var err error
	if e.Sig, err = x.set.sig(f); err != nil {
		return err
	}
	if e.State != Completed {
		e.Frame = x.frame(f["frames"])
	}
	if x.dump.Thread == "" {
		x.dump.Thread = strings.Clone(word(f["thread_id"]))
	}
	x.dump.Entries = append(x.dump.Entries, e)
	return nil
}

// sizes writes the shapes of tensors and counts their elements.
func sizes(b []byte, v any) ([]byte, int64) {
	var sum int64
	end := len(b) + maxText
	for i, shape := range items(v) {
		if i >= maxDims || len(b) > end {
			b = append(b, "..."...)
			break
		}
		n := int64(1)
		b = append(b, '[')
		dims := items(shape)
		for j, dim := range dims[:min(len(dims), maxDims)] {
			if j > 0 {
				b = append(b, ' ')
			}
			d := number(dim)
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

// dtypes writes the types of tensors.
func dtypes(b []byte, v any) []byte {
	list := items(v)
	for i, t := range list[:min(len(list), maxDims)] {
		if i > 0 {
			b = append(b, ' ')
		}
		name := word(t)
		b = append(b, name[:min(len(name), 32)]...)
	}
	return b
}

// frame is where the program launched a collective.
func (x *entryReader) frame(v any) int32 {
	list := items(v)
	at := func(i int, key string) any { return dict(list[i])[key] }
	i := pyframe.Telling(min(len(list), maxDims), func(i int) string { return word(at(i, "filename")) })
	if i < 0 {
		return 0
	}
	return x.set.frame(fmt.Sprintf("%s at %s:%d", word(at(i, "name")), word(at(i, "filename")), number(at(i, "line"))))
}

// status keeps the last number that the status gives for a group, which a ring that wrapped may not show.
func (x *entryReader) status(groups map[string]any) {
	for id, v := range groups {
		last := dict(v)["last_enqueued_collective"]
		g, ok := x.byID[id]
		seq := number(last)
		if !ok || last == nil || seq < 0 || seq >= 1<<31 {
			continue
		}
		if x.dump.Last == nil {
			x.dump.Last = map[int32]int32{}
		}
		x.dump.Last[g] = int32(seq)
	}
}
