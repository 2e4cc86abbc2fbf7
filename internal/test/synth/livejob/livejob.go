// Package livejob makes what a synthetic training job tells about itself while a planted fault holds it up: the flight
// recorder's dumps, RAS answers, logs and stacks of all its ranks. The job has tensor-parallel groups of consecutive
// ranks, data-parallel groups across them and one group of all; a step is an all-gather and a reduce-scatter on the
// first, two all-reduces on the second and one on the last. Only tests use it.
package livejob

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Fault is what is planted at the last step.
type Fault string

// The faults.
const (
	None    Fault = "none"
	Late    Fault = "late"
	Killed  Fault = "killed"
	Stopped Fault = "stopped"
	Op      Fault = "op"
	Size    Fault = "size"
	Order   Fault = "order"
	Kernel  Fault = "kernel"
)

// Job is a job with a fault.
type Job struct {
	Ranks, TP, Steps int
	Fault            Fault
	Culprit          int
	Frames           int // frames an entry; 0 is 3

	all string // the list of all ranks, written once
}

// Entry is one launched collective.
type Entry struct {
	Record, Seq, Group int
	Op                 string
	In, Out            int
	State              string
	Created            int64
}

// Groups are the names, descriptions and ranks of a rank's process groups: all, tensor, data.
func (j *Job) Groups(rank int) (ids [3]int, members [3][]int) {
	tp, dp := rank/j.TP, rank%j.TP
	ids = j.ids(rank)
	for r := range j.Ranks {
		members[0] = append(members[0], r)
		if r/j.TP == tp {
			members[1] = append(members[1], r)
		}
		if r%j.TP == dp {
			members[2] = append(members[2], r)
		}
	}
	return ids, members
}

// ids are the numbers of a rank's groups.
func (j *Job) ids(rank int) [3]int { return [3]int{0, 1 + rank/j.TP, 1 + j.Ranks/j.TP + rank%j.TP} }

// step is one collective of the program: which of a rank's groups, what, elements in and out.
type step struct {
	which   int
	op      string
	in, out int
}

var program = []step{
	{1, "_all_gather_base", 32768, 65536},
	{1, "_reduce_scatter_base", 65536, 32768},
	{2, "all_reduce", 262144, 262144},
	{2, "all_reduce", 131072, 131072},
	{0, "all_reduce", 65536, 65536},
}

const began = 1_800_000_000_000_000_000

// Entries are what a rank launched.
func (j *Job) Entries(rank int) []Entry {
	ids := j.ids(rank)
	var list []Entry
	var seq [3]int
	add := func(s step, state string) {
		seq[s.which]++
		n := len(list)
		list = append(list, Entry{
			Record: n, Seq: seq[s.which], Group: ids[s.which], Op: s.op, In: s.in, Out: s.out, State: state,
			Created: began + int64(n)*1e6 + int64(rank)*1000,
		})
	}
	for range j.Steps - 1 {
		for _, s := range program {
			add(s, "completed")
		}
	}
	mine := rank == j.Culprit
	sameDP, sameTP := rank%j.TP == j.Culprit%j.TP, rank/j.TP == j.Culprit/j.TP
	for i, s := range j.last(mine) {
		state := "completed"
		switch j.Fault {
		case None, Size:
		case Late, Killed, Stopped:
			if i >= 2 && mine {
				return list
			}
			if s.which == 0 || s.which == 2 && sameDP {
				state = "scheduled"
			}
		case Op:
			if s.which == 0 && !mine {
				state = "scheduled"
			}
		case Order:
			// the culprit's neighbours wait in their tensor group, so everything of theirs waits, and all wait for the world
			if s.which == 0 || sameTP || s.which == 2 {
				state = "scheduled"
			}
		case Kernel:
			if s.which == 0 {
				state = "scheduled"
			} else if s.which == 2 && sameDP {
				if state = "started"; mine || i > 2 {
					state = "scheduled"
				}
			}
		}
		add(s, state)
	}
	return list
}

// last is the program of the last step of one rank.
func (j *Job) last(culprit bool) []step {
	list := append([]step(nil), program...)
	if !culprit {
		return list
	}
	switch j.Fault {
	case Op:
		list[4] = step{0, "_all_gather_base", 65536, 65536 * j.Ranks}
	case Size:
		list[4] = step{0, "all_reduce", 32768, 32768}
	case Order:
		list = append([]step{program[4]}, program[:4]...)
	}
	return list
}

// rankText is a list of ranks as the recorder writes it.
func (j *Job) rankText(which int, ranks []int) string {
	if which == 0 && j.all != "" {
		return j.all
	}
	text := strings.ReplaceAll(fmt.Sprint(ranks), " ", ", ")
	if which == 0 {
		j.all = text
	}
	return text
}

// pickler writes protocol 2 as PyTorch does: strings once, then from the memo.
type pickler struct {
	b    []byte
	memo map[string]int
}

func (p *pickler) str(s string) {
	if n, ok := p.memo[s]; ok {
		if n < 256 {
			p.b = append(p.b, 'h', byte(n))
		} else {
			p.b = binary.LittleEndian.AppendUint32(append(p.b, 'j'), uint32(n))
		}
		return
	}
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'X'), uint32(len(s)))
	p.b = append(p.b, s...)
	n := len(p.memo)
	p.memo[s] = n
	if n < 256 {
		p.b = append(p.b, 'q', byte(n))
	} else {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, 'r'), uint32(n))
	}
}

func (p *pickler) num(n int64) {
	switch {
	case n >= 0 && n < 256:
		p.b = append(p.b, 'K', byte(n))
	case n >= 0 && n < 65536:
		p.b = append(p.b, 'M', byte(n), byte(n>>8))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b = binary.LittleEndian.AppendUint32(append(p.b, 'J'), uint32(int32(n)))
	default:
		p.b = binary.LittleEndian.AppendUint64(append(p.b, 0x8a, 8), uint64(n))
	}
}

func (p *pickler) pair(key string, value func()) {
	p.str(key)
	value()
}

func (p *pickler) dict(fill func()) { p.b = append(p.b, '}', '('); fill(); p.b = append(p.b, 'u') }
func (p *pickler) list(fill func()) { p.b = append(p.b, ']', '('); fill(); p.b = append(p.b, 'e') }

// Dump is a rank's dump, as the recorder pickles it.
func (j *Job) Dump(rank int) []byte {
	p := &pickler{b: []byte{0x80, 2}, memo: map[string]int{}}
	ids, members := j.Groups(rank)
	desc := [3]string{"default_pg", "tp", "dp"}
	entries := j.Entries(rank)
	p.dict(func() {
		p.pair("version", func() { p.str("2.10") })
		p.pair("pg_config", func() {
			p.dict(func() {
				for i, id := range ids {
					p.pair(fmt.Sprint(id), func() {
						p.dict(func() {
							p.pair("name", func() { p.str(fmt.Sprint(id)) })
							p.pair("desc", func() { p.str(desc[i]) })
							p.pair("ranks", func() { p.str(j.rankText(i, members[i])) })
						})
					})
				}
			})
		})
		p.pair("entries", func() {
			p.list(func() {
				for i := range entries {
					p.entry(j, &entries[i], ids, desc)
				}
			})
		})
	})
	return append(p.b, '.')
}

func (p *pickler) entry(j *Job, e *Entry, ids [3]int, desc [3]string) {
	which := 0
	for i := range ids {
		if ids[i] == e.Group {
			which = i
		}
	}
	p.dict(func() {
		p.pair("frames", func() {
			p.list(func() {
				for i := range max(j.Frames, 3) {
					p.dict(func() {
						p.pair("name", func() { p.str([]string{"all_reduce", "train_step", "main"}[i%3]) })
						p.pair("filename", func() {
							p.str([]string{"/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py", "/job/train.py"}[min(i, 1)])
						})
						p.pair("line", func() { p.num(int64(100 + i)) })
					})
				}
			})
		})
		p.pair("record_id", func() { p.num(int64(e.Record)) })
		p.pair("pg_id", func() { p.num(int64(which)) })
		p.pair("process_group", func() { p.str(fmt.Sprint(e.Group)); p.str(desc[which]); p.b = append(p.b, 0x86) })
		p.pair("collective_seq_id", func() { p.num(int64(e.Seq)) })
		p.pair("p2p_seq_id", func() { p.num(0) })
		p.pair("op_id", func() { p.num(int64(e.Seq)) })
		p.pair("profiling_name", func() { p.str("nccl:" + e.Op) })
		p.pair("time_created_ns", func() { p.num(e.Created) })
		p.pair("input_sizes", func() { p.list(func() { p.list(func() { p.num(int64(e.In)) }) }) })
		p.pair("input_dtypes", func() { p.list(func() { p.str("Float") }) })
		p.pair("output_sizes", func() { p.list(func() { p.list(func() { p.num(int64(e.Out)) }) }) })
		p.pair("output_dtypes", func() { p.list(func() { p.str("Float") }) })
		p.pair("state", func() { p.str(e.State) })
		p.pair("time_discovered_started_ns", func() { p.b = append(p.b, 'N') })
		p.pair("time_discovered_completed_ns", func() {
			if e.State != "completed" {
				p.b = append(p.b, 'N')
				return
			}
			p.num(e.Created + 5e5)
		})
		p.pair("retired", func() { p.b = append(p.b, 0x88) })
		p.pair("timeout_ms", func() { p.num(600000) })
		p.pair("is_p2p", func() { p.b = append(p.b, 0x89) })
	})
}
