// Package ringfile writes rings of operations as busbar's profiler plugin does, for tests of what reads them.
package ringfile

import (
	"encoding/binary"
	"slices"
	"time"

	"busbar.dev/input/profile"
)

// The layout of the plugin's file, and the numbers that it has for names.
const (
	magic      = "BUSBARP1"
	headSize   = 4096
	commSize   = 128
	maxComms   = 256
	recordSize = 96
	maxRecords = 1 << 20
	nextAt     = 48
)

var (
	functions = []string{
		"", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "AlltoAll", "Gather", "Scatter",
	}
	types = []string{
		"", "Int8", "Uint8", "Int32", "Uint32", "Int64", "Uint64", "Float16", "Float32", "Float64", "Bfloat16", "Float8e4m3",
		"Float8e5m2",
	}
	algos  = []string{"", "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	protos = []string{"", "ll", "ll128", "simple"}
)

// Encode is a ring as the plugin writes it. Operations get the numbers of their places.
func Encode(r *profile.Ring) []byte {
	le := binary.LittleEndian
	records := max(len(r.Ops), 64)
	data := make([]byte, headSize+maxComms*commSize+min(records, maxRecords)*recordSize)
	copy(data, magic)
	for i, v := range []uint32{
		1, headSize + maxComms*commSize, recordSize, uint32(min(records, maxRecords)), commSize, maxComms,
	} {
		le.PutUint32(data[8+4*i:], v)
	}
	le.PutUint64(data[32:], uint64(r.PID))
	le.PutUint64(data[40:], uint64(r.Created.UnixNano()))
	le.PutUint64(data[nextAt:], uint64(len(r.Ops)))
	for i, v := range []int{r.Rank, r.LocalRank, r.World} {
		le.PutUint32(data[64+4*i:], uint32(v))
	}
	copy(data[80:143], r.Host)
	copy(data[144:239], r.Job)
	for i := range r.Comms[:min(len(r.Comms), maxComms)] {
		c := &r.Comms[i]
		e := data[headSize+i*commSize:]
		le.PutUint64(e, c.Hash)
		for k, v := range []int{c.Rank, c.Ranks, c.Nodes, 1} {
			le.PutUint32(e[8+4*k:], uint32(v))
		}
		if c.Ended {
			e[20] = 2
		}
		copy(e[32:commSize-1], c.Name)
	}
	for i := range r.Ops[:min(len(r.Ops), maxRecords)] {
		encode(&r.Ops[i], data[headSize+maxComms*commSize+i*recordSize:], i)
	}
	return data
}

func encode(o *profile.Op, e []byte, at int) {
	le := binary.LittleEndian
	begin := uint64(o.Launched.UnixNano())
	end := begin + uint64(o.Took/time.Nanosecond)
	for i, v := range []uint64{uint64(at) + 1, o.Sequence, o.Count, begin, 0, 0, begin, end} {
		le.PutUint64(e[8*i:], v)
	}
	if o.GPU {
		le.PutUint64(e[32:], begin)
		le.PutUint64(e[40:], end)
	}
	le.PutUint32(e[64:], uint32(o.Comm))
	le.PutUint32(e[68:], uint32(o.Peer))
	if o.Started || o.Ended {
		le.PutUint32(e[72:], uint32(max(o.Channels, 1)))
	}
	if o.Ended {
		le.PutUint32(e[76:], uint32(max(o.Channels, 1)))
	}
	for i, v := range []int{
		slices.Index(functions, o.Function), slices.Index(types, o.Type), slices.Index(algos, o.Algo),
		slices.Index(protos, o.Proto), o.Channels,
	} {
		e[80+i] = byte(max(v, 0))
	}
}
