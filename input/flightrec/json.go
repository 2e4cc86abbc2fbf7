package flightrec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// MatchJSON reports the recorder's JSON, alone or in an answer of the worker server.
func MatchJSON(data []byte) bool {
	head := bytes.TrimSpace(data[:min(len(data), 1<<16)])
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	tail := data[max(0, len(data)-1<<16):]
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) || bytes.Contains(tail, []byte(key)) }
	return has(`"pg_config"`) && has(`"version"`) || has(`"collective_seq_id"`) && has(`"profiling_name"`)
}

// number is an integer that some releases write as a string.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	b = bytes.Trim(b, `"`)
	if string(b) == "null" || len(b) == 0 {
		return nil
	}
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(b), 64)
		if ferr != nil {
			return err
		}
		v = int64(f)
	}
	*n = number(v)
	return nil
}

type jsonDump struct {
	Version string `json:"version"`
	Library string `json:"comm_lib_version"`
	Rank    *int   `json:"rank"`
	Config  map[string]struct {
		Name  string          `json:"name"`
		Desc  string          `json:"desc"`
		Ranks json.RawMessage `json:"ranks"`
	} `json:"pg_config"`
	Status map[string]struct {
		Enqueued number `json:"last_enqueued_collective"`
	} `json:"pg_status"`
	Entries jsonEntries `json:"entries"`
}

// jsonEntries are the newest entries: three bytes can stand for one, which takes a hundred times as much.
type jsonEntries struct {
	list    []jsonEntry
	dropped int
}

func (l *jsonEntries) UnmarshalJSON(b []byte) error {
	in := json.NewDecoder(bytes.NewReader(b))
	if t, err := in.Token(); err != nil || t != json.Delim('[') {
		return err // null
	}
	for in.More() {
		var e jsonEntry
		if err := in.Decode(&e); err != nil {
			return err
		}
		if l.list = append(l.list, e); len(l.list) >= 2*maxEntries {
			l.drop(maxEntries)
		}
	}
	l.drop(len(l.list) - maxEntries)
	return nil
}

// drop leaves the oldest out.
func (l *jsonEntries) drop(n int) {
	if n > 0 {
		l.dropped += n
		l.list = slices.Delete(l.list, 0, n)
	}
}

type jsonEntry struct {
	Record    number    `json:"record_id"`
	PG        *number   `json:"pg_id"`
	Group     []string  `json:"process_group"`
	Seq       number    `json:"collective_seq_id"`
	P2PSeq    number    `json:"p2p_seq_id"`
	Op        string    `json:"profiling_name"`
	Created   number    `json:"time_created_ns"`
	Started   number    `json:"time_discovered_started_ns"`
	Completed number    `json:"time_discovered_completed_ns"`
	Duration  float64   `json:"duration_ms"`
	Timeout   number    `json:"timeout_ms"`
	State     string    `json:"state"`
	P2P       bool      `json:"is_p2p"`
	In        [][]int64 `json:"input_sizes"`
	Out       [][]int64 `json:"output_sizes"`
	InTypes   []string  `json:"input_dtypes"`
	OutTypes  []string  `json:"output_dtypes"`
	Thread    string    `json:"thread_id"`
	Frames    []struct {
		Name string `json:"name"`
		File string `json:"filename"`
		Line number `json:"line"`
	} `json:"frames"`
}

// fromJSON reads what the worker server and _dump_nccl_trace_json return.
func (s *Set) fromJSON(data []byte) (*Dump, error) {
	var j jsonDump
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("flight recorder: %w", err)
	}
	d := &Dump{Rank: -1, Version: clip(j.Version), Library: clip(j.Library)}
	if j.Rank != nil && *j.Rank >= 0 && *j.Rank < maxRanks {
		d.Rank = *j.Rank
	}
	names := slices.Sorted(maps.Keys(j.Config))
	for _, k := range names {
		c := j.Config[k]
		name := cmp.Or(c.Name, k)
		ranks := string(bytes.Trim(c.Ranks, `"`))
		if ranks == "null" {
			ranks = ""
		}
		list, err := s.rankList([]byte(ranks))
		if err != nil {
			return nil, fmt.Errorf("process group %.40q: %w", name, err)
		}
		g, err := s.group([]byte(name), c.Desc, list)
		if err != nil {
			return nil, err
		}
		d.Member = append(d.Member, g)
	}
	d.Dropped = j.Entries.dropped
	byID := map[int64]int32{}
	for i := range j.Entries.list {
		if err := s.jsonEntry(d, &j.Entries.list[i], byID); err != nil {
			return nil, err
		}
	}
	for k, st := range j.Status {
		if id, err := strconv.ParseInt(k, 10, 64); err == nil {
			d.keepLast(byID, id, int64(st.Enqueued))
		}
	}
	return d, nil
}

func (s *Set) jsonEntry(d *Dump, j *jsonEntry, byID map[int64]int32) error {
	e := Entry{
		Record: int64(j.Record), Created: int64(j.Created), Started: int64(j.Started), Completed: int64(j.Completed),
		Seq: int32(j.Seq), DurationMs: float32(j.Duration), TimeoutMs: float32(j.Timeout), State: s.states[j.State],
		P2P: j.P2P,
	}
	if j.P2P {
		e.Seq = int32(j.P2PSeq)
	}
	name, desc := "", ""
	if len(j.Group) > 0 {
		name = j.Group[0]
	}
	if len(j.Group) > 1 {
		desc = j.Group[1]
	}
	g := int32(-1)
	for _, m := range d.Member {
		if s.Groups[m].Name == name {
			g = m
		}
	}
	if g < 0 {
		var err error
		if g, err = s.group([]byte(name), desc, 0); err != nil {
			return err
		}
		d.Member = append(d.Member, g)
	}
	e.Group = g
	if j.PG != nil {
		byID[int64(*j.PG)] = g
	}
	in, numIn := jsonSizes(j.In)
	out, numOut := jsonSizes(j.Out)
	types := jsonTypes(j.InTypes) + " -> " + jsonTypes(j.OutTypes)
	j.Op = j.Op[:min(len(j.Op), maxText)]
	s.scratch = append(s.scratch[:0], j.Op+"\x00"+in+" -> "+out+"\x00"+types...)
	var err error
	e.Sig, err = s.sig(func() Sig {
		return Sig{Op: opName(j.Op), Sizes: clip(in + " -> " + out), Dtypes: clip(types), In: numIn, Out: numOut}
	})
	if e.State != Completed {
		var by launchedBy
		for _, f := range j.Frames[:min(len(j.Frames), maxDims)] {
			by.see(f.Name, f.File, int64(f.Line))
		}
		e.Frame = s.frame(by.text)
	}
	if d.Thread == "" {
		d.Thread = clip(j.Thread)
	}
	d.Entries = append(d.Entries, e)
	return err
}

// jsonSizes writes shapes as the pickle's reader does.
func jsonSizes(list [][]int64) (string, int64) {
	var b []byte
	var sum int64
	for i, shape := range list {
		if i >= maxDims || len(b) > maxText {
			b = append(b, "..."...)
			break
		}
		n := int64(1)
		b = append(b, '[')
		for j, d := range shape[:min(len(shape), maxDims)] {
			if j > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, d, 10)
			n = times(n, d)
		}
		b = append(b, ']')
		sum += n
	}
	return string(b), sum
}

func jsonTypes(list []string) string {
	var b []byte
	for i, t := range list[:min(len(list), maxDims)] {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, t[:min(len(t), 32)]...)
	}
	return string(b)
}
