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

	"busbar.dev/coll"
	"busbar.dev/result/trace"
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
type (
	header struct {
		Magic                                             [8]byte
		Version, Size, RecordSize, Records, CommSize, Max uint32
		PID, Created, Next, Lost                          uint64
		Rank, LocalRank, World, _                         int32
		Host                                              [64]byte
		Job                                               [96]byte
	}
	commEntry struct {
		Hash                      uint64
		Rank, Ranks, Nodes, State int32
		_                         [8]byte
		Name                      [96]byte
	}
	record struct {
		Number, Sequence, Count, Launched        uint64 // Number counts from 1; 0 is an empty place
		GPUBegin, GPUEnd, Begin, End             uint64
		Comm                                     uint32
		Peer                                     int32
		Started, Stopped                         uint32
		Function, Type, Algo, Proto, Channels, _ uint8
		_                                        [10]byte
	}
)

const (
	magic      = "BUSBARP1"
	headSize   = 4096
	commSize   = 128
	maxComms   = 256
	recordSize = 96
	maxRecords = 1 << 20
	recordsAt  = headSize + maxComms*commSize
	nextAt     = 48
	maxCount   = 1 << 56 // of operations: what the plugin's handles hold
)

// MaxSize bounds a ring's file.
const MaxSize = recordsAt + maxRecords*recordSize

var (
	functions = strings.Split(",AllReduce,AllGather,ReduceScatter,Broadcast,Reduce,Send,Recv,AlltoAll,Gather,Scatter", ",")
	types     = strings.Split(",Int8,Uint8,Int32,Uint32,Int64,Uint64,Float16,Float32,Float64,Bfloat16,Float8e4m3,Float8e5m2", ",")
	typeSizes = [...]uint64{1, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1}
	algos     = strings.Split(",tree,ring,collnet_direct,collnet_chain,nvls,nvls_tree,pat", ",")
	protos    = strings.Split(",ll,ll128,simple", ",")
)

// Match reports a ring by its beginning.
func Match(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// Read reads a ring. Records that were overwritten until next operations were begun are left out; next of 0 is that of
// data.
func Read(name string, data []byte, next uint64) (*Ring, error) {
	if len(data) < recordsAt || !Match(data) {
		return nil, fmt.Errorf("%s: %d bytes that are no ring of busbar's profiler plugin; expected %s and at least %d "+
			"bytes", name, len(data), magic, recordsAt)
	}
	var h header
	decode(data, &h)
	records := int(h.Records)
	switch {
	case h.Version != 1:
		return nil,
			fmt.Errorf("%s: a ring of version %d; expected version 1: use the busbar that the plugin is of", name, h.Version)
	case h.Size != recordsAt, h.RecordSize != recordSize, h.CommSize != commSize, h.Max != maxComms,
		records < 1, records > maxRecords, len(data) < recordsAt+records*recordSize, h.Next > maxCount, h.Lost > maxCount:
		return nil, fmt.Errorf("%s: this ring is damaged or cut off: of %d bytes, its header gives %d and %d records of %d, "+
			"and counts %d operations and %d lost ones; expected %d bytes before records of %d", name, len(data), h.Size,
			records, h.RecordSize, h.Next, h.Lost, recordsAt, recordSize)
	}
	r := &Ring{
		PID: int(h.PID & math.MaxInt32), Created: stamp(h.Created), Next: h.Next, Lost: h.Lost, Rank: int(h.Rank),
		LocalRank: int(h.LocalRank), World: max(int(h.World), 0), Host: text(h.Host[:]), Job: text(h.Job[:]),
	}
	index, err := r.readComms(data[headSize:recordsAt])
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
		var x record
		decode(data[recordsAt+slot*recordSize:], &x)
		// A stamp is written last, with the record whole before it: reading while the process writes does not explain these.
		if n := x.Number; n != 0 && ((n-1)%uint64(records) != uint64(slot) || x.Comm >= maxComms) {
			return nil, fmt.Errorf("%s: this ring is damaged: the record at place %d has the number %d and is of communicator "+
				"%d; expected a number that belongs there and at most %d communicators", name, slot, n, x.Comm, maxComms)
		}
		if o, ok := r.op(&x, index); ok && o.Number >= oldest {
			r.Ops = append(r.Ops, o)
		}
	}
	return r, nil
}

// decode fills a part of the layout; the length of data was looked at before.
func decode(data []byte, to any) { _, _ = binary.Decode(data, binary.LittleEndian, to) }

// readComms reads the table, and says where each entry of it went.
func (r *Ring) readComms(data []byte) (index [maxComms]int, err error) {
	for i := range maxComms {
		var c commEntry
		decode(data[i*commSize:], &c)
		switch index[i] = -1; c.State {
		case 0:
			continue
		case 1, 2:
		default:
			return index, fmt.Errorf("this ring is damaged: communicator %d has the state %d; expected 0, 1 or 2", i, c.State)
		}
		index[i] = len(r.Comms)
		r.Comms = append(r.Comms, Comm{
			Hash: c.Hash, Rank: int(c.Rank), Ranks: max(int(c.Ranks), 0), Nodes: max(int(c.Nodes), 0), Name: text(c.Name[:]),
			Ended: c.State == 2,
		})
	}
	return index, nil
}

// op is the operation of a record; ok is false of one that is empty or being written.
func (r *Ring) op(x *record, index [maxComms]int) (o Op, ok bool) {
	if x.Number == 0 || index[x.Comm] < 0 {
		return o, false
	}
	c := &r.Comms[index[x.Comm]]
	o = Op{
		Number: x.Number - 1, Comm: index[x.Comm], Sequence: x.Sequence, Count: x.Count, Launched: stamp(x.Launched),
		Peer: int(x.Peer), Channels: int(x.Channels), Function: elementOf(functions, x.Function),
		Kind: trace.Operation(elementOf(functions, x.Function)), Type: elementOf(types, x.Type),
		Algo:  elementOf(algos, x.Algo),
		Proto: elementOf(protos, x.Proto), Started: x.Started > 0,
		// NCCL before 2.27 does not say how many channels there are: those that began have to end.
		Ended: x.Stopped > 0 && x.Stopped >= max(x.Started, uint32(x.Channels)),
	}
	size := o.Count * elementOf(typeSizes[:], x.Type)
	if o.Kind.Blocked() && c.Ranks > 0 {
		size *= uint64(c.Ranks)
	}
	if size > 1<<50 { // no buffer has that many; a count that overflows is of a damaged ring
		return o, false
	}
	o.Bytes = unit.Bytes(size)
	if !o.Ended {
		return o, true
	}
	begin, end := x.GPUBegin, x.GPUEnd
	if o.GPU = begin > 0 && end > begin; !o.GPU {
		begin, end = x.Begin, x.End
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
	return strings.ToValidUTF8(string(b), "?")
}
