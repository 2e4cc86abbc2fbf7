//go:build linux

package native

import (
	"math/bits"
	"syscall"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/internal/reduce"
	"busbar.dev/unit"
)

// operation is the collective of a request.
func operation(q device.Request, n int) coll.Op {
	o := coll.Op{Kind: q.Op, Bytes: unit.Bytes(q.Bytes), Root: q.Root}
	var err error
	if q.Dtype != "" {
		o.Type, err = coll.ParseDtype(q.Dtype)
		check(err)
	}
	if q.Redop != "" {
		o.Reduce, err = coll.ParseRedop(q.Redop)
		check(err)
	}
	check(o.Check(n))
	if o.Kind == coll.Barrier || o.Kind == coll.AllToAllV {
		refuse("%s is none of the collectives that busbar-gpu runs", o.Kind)
	}
	return o
}

// furthest is the most memory that calls of one size walk through: more than any cache of a GPU.
const furthest = 1 << 30

// walk is how many places the calls of a size take in turn, each its size after the one before. nccl-tests does so,
// that small sizes are not measured from caches that no training step would find filled.
func walk(size, room int64) int64 {
	if size <= 0 {
		return 1
	}
	return max(min(room, furthest)/size, 1)
}

// buffers makes room for a collective at all its places, and says where to send from and receive to at the first.
func (w *Worker) buffers(o coll.Op, room int64, inPlace bool) (send, recv uintptr) {
	n, rank := w.nccl.ranks, w.nccl.rank
	size := int64(o.Size(n))
	before := (walk(size, room) - 1) * size // the last place
	s, r := before+int64(o.Send(n, rank)), before+int64(o.Recv(n, rank))
	if !inPlace {
		return w.both(s, r)
	}
	w.driver.grow(&w.recv, max(s, r))
	send, recv = w.recv.at, w.recv.at
	block := uintptr(o.Block(n)) * uintptr(rank)
	switch {
	case o.Kind.Rooted() && rank != o.Root:
	case o.Kind == coll.AllGather || o.Kind == coll.Hypercube || o.Kind == coll.Gather:
		send += block
	case o.Kind == coll.ReduceScatter || o.Kind == coll.Scatter:
		recv += block
	}
	return send, recv
}

// both makes room for what is sent and for what is received.
func (w *Worker) both(send, recv int64) (from, to uintptr) {
	w.driver.grow(&w.send, send)
	w.driver.grow(&w.recv, recv)
	return w.send.at, w.recv.at
}

// collective warms up, times and checks one collective of one size.
func (w *Worker) collective(q device.Request) *device.Timing {
	w.mustBeJoined()
	o := operation(q, w.nccl.ranks)
	send, recv := w.buffers(o, q.Room, q.InPlace)
	size := int64(o.Size(w.nccl.ranks))
	places := walk(size, q.Room)
	start := func(i int) {
		at := uintptr(int64(i) % places * size)
		w.nccl.start(o, send+at, recv+at, w.driver.stream)
	}
	t := w.time(q, w.barrier, start)
	if q.Check && exact(o.Reduce, w.nccl.ranks) {
		t.Wrong = new(w.check(o, send, recv, start))
	}
	return t
}

// time runs what start puts into the stream, as nccl-tests does: warm, then all together by the clock, from the moment
// that ready returns.
func (w *Worker) time(q device.Request, ready func(), start func(i int)) *device.Timing {
	for i := range q.Warm {
		start(i)
	}
	ready()
	n := max(q.Iters, 1)
	begin := time.Now()
	w.driver.mark(0)
	for i := range n {
		start(i)
	}
	w.driver.mark(1)
	w.wait()
	took := time.Since(begin)
	return &device.Timing{
		Micros: float64(took.Nanoseconds()) / 1e3 / float64(n), GPU: w.driver.elapsed() / float64(n),
	}
}

// wait is until the stream is done. It asks and yields as nccl-tests does: a wait inside the driver would keep a core
// that NCCL's own threads may need, and would not see that NCCL has given up.
func (w *Worker) wait() {
	const notReady = 600 // of CUDA and HIP
	for {
		code := call(w.driver.f.Query, w.driver.stream)
		if code != notReady {
			w.driver.must("stream query", code)
			return
		}
		w.nccl.gaveUp()
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// barrier returns when all ranks have come.
func (w *Worker) barrier() {
	w.driver.sync()
	if w.nccl.ranks < 2 {
		return
	}
	w.driver.grow(&w.flag, 8)
	w.nccl.start(coll.Op{Kind: coll.AllReduce, Bytes: 4}, w.flag.at, w.flag.at, w.driver.stream)
	w.wait()
}

// spoil overwrites memory of the GPU: what is not written after that must not pass.
func (d *driver) spoil(at uintptr, size int64) {
	if size > 0 {
		d.do("memset", d.f.Set8, at, 0xA5, size, d.stream)
		d.sync()
	}
}

// exact reports whether a reduction by NCCL does not depend on how it is computed.
func exact(r coll.Redop, n int) bool {
	return r != coll.MulSum && (r != coll.Avg || bits.OnesCount(uint(n)) == 1)
}

// check runs a collective once on known values and counts elements that are not what they must be.
func (w *Worker) check(o coll.Op, send, recv uintptr, start func(i int)) (wrong int64) {
	n, rank, size := w.nccl.ranks, w.nccl.rank, int64(o.Type.Size())
	k := reduce.Known{Op: o, Ranks: n}
	w.driver.spoil(recv, int64(o.Recv(n, rank)))
	w.driver.repeat(send, int64(o.Send(n, rank)), k.Tile(k.Sent(rank)))
	w.barrier() // nobody writes into what another has not filled yet
	start(0)
	w.wait()
	for _, x := range k.Expected(rank) {
		wrong += w.differing(recv+uintptr(x.At*size), x.Count*size, k.Tile(x), o.Type.Size())
	}
	return wrong
}

// differing counts elements of a part of the GPU's memory that differ from a tile that is repeated.
func (w *Worker) differing(at uintptr, size int64, tile []byte, element int) (wrong int64) {
	const most = 64 << 20
	room := most / int64(len(tile)) * int64(len(tile))
	if int64(cap(w.host)) < min(size, room) {
		w.host = make([]byte, min(size, room))
	}
	for done := int64(0); done < size; done += room {
		part := w.host[:min(room, size-done)]
		w.driver.fetch(part, at+uintptr(done))
		wrong += reduce.Differing(part, tile, element)
	}
	return wrong
}

// pair sends to one rank, receives from one, or both at once. Other ranks are not asked at all.
func (w *Worker) pair(q device.Request) *device.Timing {
	w.mustBeJoined()
	send, recv := w.both(q.Bytes, q.Bytes)
	for _, peer := range []*int{q.Send, q.Receive} {
		if peer != nil && (*peer < 0 || *peer >= w.nccl.ranks || *peer == w.nccl.rank) {
			refuse("no such rank to exchange with")
		}
	}
	m := &messages{n: w.nccl, count: uintptr(q.Bytes), dtype: typeOf(coll.Int8), stream: w.driver.stream}
	start := func(int) {
		m.group(func() {
			if q.Send != nil {
				m.send(*q.Send, send)
			}
			if q.Receive != nil {
				m.recv(*q.Receive, recv)
			}
		})
	}
	t := w.time(q, w.driver.sync, start)
	if !q.Check {
		return t
	}
	t.Wrong = new(int64)
	k := reduce.Known{Op: coll.Op{Kind: coll.SendRecv, Type: coll.Int8}, Ranks: w.nccl.ranks}
	w.driver.repeat(send, q.Bytes, k.Tile(reduce.Region{Count: q.Bytes, Rank: w.nccl.rank}))
	w.driver.spoil(recv, q.Bytes)
	start(0)
	if w.wait(); q.Receive != nil {
		*t.Wrong = w.differing(recv, q.Bytes, k.Tile(reduce.Region{Count: q.Bytes, Rank: *q.Receive}), 1)
	}
	return t
}
