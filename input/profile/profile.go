// Package profile reads the rings of busbar's profiler plugin for NCCL: the last operations of one process with their
// communicator, size, algorithm and times, those that have not ended among them. The process writes on while a ring is
// read; what is torn by that is left out.
package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Ring is what one process wrote.
type Ring struct {
	PID                    int
	Host, Job              string
	Rank, LocalRank, World int // global; -1, -1 and 0 where the launcher did not say
	Created                time.Time
	Lost                   uint64 // operations of communicators that the ring had no room for
	Next                   uint64 // operations so far
	Comms                  []Comm
	Ops                    []Op // in the order they were launched
}

// Comm is a communicator.
type Comm struct {
	Hash               uint64
	Rank, Ranks, Nodes int // Ranks and Nodes are 0 where NCCL (before 2.27) does not say
	Name               string
	Ended              bool
}

// Op is one operation of one rank.
type Op struct {
	Number   uint64 // counts the operations of the process
	Comm     int    // index into Comms
	Function string // AllReduce, Send
	Kind     coll.Kind
	Sequence uint64 // counts the operations of this function on this communicator; 0 of sends and receives
	Type     string // Float32; "" unknown
	Count    uint64
	Bytes    unit.Bytes // as nccl-tests counts them: of all ranks together where every rank has a block
	Algo     string     // ring; "" unknown
	Proto    string
	Channels int
	Peer     int // or the root
	Launched time.Time
	Started  bool
	Ended    bool
	// Took is the time between the first channel's begin and the last one's end: by the GPU's clock where GPU is set, else
	// as the proxy saw it. 0 where the operation has not ended, or nothing timed it.
	Took time.Duration
	GPU  bool
}

// The layout, which is that of struct header, struct comm and struct record of the plugin.
const (
	magic      = "BUSBARP1"
	headSize   = 4096
	commSize   = 128
	maxComms   = 256
	recordSize = 96
	maxRecords = 1 << 20
	nextAt     = 48
	maxCount   = 1 << 56 // of operations: what the plugin's handles hold
)

// MaxSize bounds a ring's file.
const MaxSize = headSize + maxComms*commSize + maxRecords*recordSize

var (
	functions = [...]string{
		"", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "AlltoAll", "Gather", "Scatter",
	}
	kinds = [...]coll.Kind{
		coll.None, coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.None, coll.None,
		coll.AllToAll, coll.Gather, coll.Scatter,
	}
	types = [...]string{
		"", "Int8", "Uint8", "Int32", "Uint32", "Int64", "Uint64", "Float16", "Float32", "Float64", "Bfloat16", "Float8e4m3",
		"Float8e5m2",
	}
	typeSizes = [...]uint64{1, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1}
	algos     = [...]string{"", "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	protos    = [...]string{"", "ll", "ll128", "simple"}
)

// Match reports a ring by its beginning.
func Match(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// NextOf is how many operations a ring had so far, of its first bytes. Who reads a ring that is written reads these
// again afterwards and gives them to Read.
func NextOf(head []byte) uint64 {
	if len(head) < nextAt+8 || !Match(head) {
		return 0
	}
	return binary.LittleEndian.Uint64(head[nextAt:])
}

// Read reads a ring. Records that were overwritten until next operations were begun are left out; next of 0 is that of
// data.
func Read(name string, data []byte, next uint64) (*Ring, error) {
	le := binary.LittleEndian
	if len(data) < headSize+maxComms*commSize || !Match(data) {
		return nil, fmt.Errorf("%s: %d bytes that are no ring of busbar's profiler plugin; expected %s and at least %d "+
			"bytes", name, len(data), magic, headSize+maxComms*commSize)
	}
	u32 := func(at int) uint32 { return le.Uint32(data[at:]) }
	records := int(u32(20))
	switch {
	case u32(8) != 1:
		return nil,
			fmt.Errorf("%s: a ring of version %d; expected version 1: use the busbar that the plugin is of", name, u32(8))
	case u32(12) != headSize+maxComms*commSize || u32(16) != recordSize || u32(24) != commSize || u32(28) != maxComms:
		return nil, fmt.Errorf("%s: this ring is damaged: its header gives sizes of %d, %d, %d and %d; expected %d, %d, %d "+
			"and %d", name, u32(12), u32(16), u32(24), u32(28), headSize+maxComms*commSize, recordSize, commSize, maxComms)
	case records < 1 || records > maxRecords || len(data) < headSize+maxComms*commSize+records*recordSize:
		return nil, fmt.Errorf("%s: a ring of %d records in %d bytes: it is cut off", name, records, len(data))
	case NextOf(data) > maxCount || le.Uint64(data[nextAt+8:]) > maxCount:
		return nil, fmt.Errorf("%s: this ring is damaged: it counts %d operations and %d lost ones", name, NextOf(data),
			le.Uint64(data[nextAt+8:]))
	}
	r := &Ring{
		PID: int(le.Uint64(data[32:]) & math.MaxInt32), Created: stamp(le.Uint64(data[40:])), Next: NextOf(data),
		Lost: le.Uint64(data[nextAt+8:]),
		Rank: int(int32(u32(64))), LocalRank: int(int32(u32(68))), World: max(int(int32(u32(72))), 0),
		Host: text(data[80:144]), Job: text(data[144:240]),
	}
	index, err := r.readComms(data[headSize : headSize+maxComms*commSize])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// What came before the last round of the ring was overwritten while it was read.
	oldest := uint64(0)
	if next = max(next, r.Next); next > uint64(records) {
		oldest = next - uint64(records)
	}
	for at := range records { // the oldest first
		slot := (int(oldest%uint64(records)) + at) % records
		from := headSize + maxComms*commSize + slot*recordSize
		// A stamp is written last, with the record whole before it: reading while the process writes does not explain these.
		if n, comm := le.Uint64(data[from:]),
			u32(from+64); n != 0 && ((n-1)%uint64(records) != uint64(slot) || comm >= maxComms) {
			return nil, fmt.Errorf("%s: this ring is damaged: the record at place %d has the number %d and is of communicator "+
				"%d; expected a number that belongs there and at most %d communicators", name, slot, n, comm, maxComms)
		}
		if o, ok := r.readOp(data[from:from+recordSize], index); ok && o.Number >= oldest {
			r.Ops = append(r.Ops, o)
		}
	}
	return r, nil
}

// readComms reads the table, and says where each entry of it went.
func (r *Ring) readComms(data []byte) (index [maxComms]int, err error) {
	for i := range maxComms {
		e := data[i*commSize : (i+1)*commSize]
		u32 := func(at int) int { return int(int32(binary.LittleEndian.Uint32(e[at:]))) }
		state := u32(20)
		switch index[i] = -1; state {
		case 0:
			continue
		case 1, 2:
		default:
			return index, fmt.Errorf("this ring is damaged: communicator %d has the state %d; expected 0, 1 or 2", i, state)
		}
		index[i] = len(r.Comms)
		r.Comms = append(r.Comms, Comm{
			Hash: binary.LittleEndian.Uint64(e), Rank: u32(8), Ranks: max(u32(12), 0), Nodes: max(u32(16), 0),
			Name: text(e[32:commSize]), Ended: state == 2,
		})
	}
	return index, nil
}

// readOp reads a record; ok is false of one that is empty or being written.
func (r *Ring) readOp(e []byte, index [maxComms]int) (o Op, ok bool) {
	le := binary.LittleEndian
	number, comm := le.Uint64(e), le.Uint32(e[64:])
	if number == 0 || index[comm] < 0 {
		return o, false
	}
	c := &r.Comms[index[comm]]
	o = Op{
		Number: number - 1, Comm: index[comm], Sequence: le.Uint64(e[8:]), Count: le.Uint64(e[16:]),
		Launched: stamp(le.Uint64(e[24:])),
		Peer:     int(int32(le.Uint32(e[68:]))), Channels: int(e[84]),
		Function: elementOf(functions[:], e[80]), Kind: elementOf(kinds[:], e[80]), Type: elementOf(types[:], e[81]),
		Algo:  elementOf(algos[:], e[82]),
		Proto: elementOf(protos[:], e[83]),
	}
	size := o.Count * elementOf(typeSizes[:], e[81])
	if o.Kind.Blocked() && c.Ranks > 0 {
		size *= uint64(c.Ranks)
	}
	if size > 1<<50 { // no buffer has that many; a count that overflows is of a damaged ring
		return o, false
	}
	o.Bytes = unit.Bytes(size)
	started, stopped := le.Uint32(e[72:]), le.Uint32(e[76:])
	o.Started = started > 0
	// NCCL before 2.27 does not say how many channels there are: those that began have to end.
	o.Ended = stopped > 0 && stopped >= max(started, uint32(o.Channels))
	if !o.Ended {
		return o, true
	}
	begin, end := le.Uint64(e[32:]), le.Uint64(e[40:])
	if o.GPU = begin > 0 && end > begin; !o.GPU {
		begin, end = le.Uint64(e[48:]), le.Uint64(e[56:])
	}
	if end > begin && end-begin < uint64(24*time.Hour) {
		o.Took = time.Duration(end - begin)
	}
	return o, true
}

// elementOf is an element of a table, the zero value for what the table does not have.
func elementOf[T any](list []T, i byte) (v T) {
	if int(i) < len(list) {
		v = list[i]
	}
	return v
}

func stamp(ns uint64) time.Time { return time.Unix(0, int64(ns&math.MaxInt64)) }

// text is a name up to its NUL, without what a terminal would take for more than a name.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	s := string(b)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "?")
	}
	return s
}
