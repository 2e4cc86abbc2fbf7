//go:build linux

package native

import (
	"bytes"
	"syscall"
	"time"
	"unsafe"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/unit"
)

// operation is the collective of a request.
func operation(q device.Request, n int) (coll.Op, error) {
	o := coll.Op{Kind: q.Op, Bytes: unit.Bytes(q.Bytes), Root: q.Root}
	var err error
	if q.Dtype != "" {
		if o.Type, err = coll.ParseDtype(q.Dtype); err != nil {
			return o, err
		}
	}
	if q.Redop != "" {
		if o.Reduce, err = coll.ParseRedop(q.Redop); err != nil {
			return o, err
		}
	}
	return o, o.Check(n)
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
func (w *Worker) buffers(o coll.Op, room int64, inPlace bool) (send, recv uintptr, err error) {
	n, rank := w.nccl.ranks, w.nccl.rank
	size := int64(o.Size(n))
	before := (walk(size, room) - 1) * size // the last place
	s, r := before+int64(o.Send(n, rank)), before+int64(o.Recv(n, rank))
	if inPlace {
		if err := w.driver.grow(&w.recv, max(s, r)); err != nil {
			return 0, 0, err
		}
		send, recv = w.recv.at, w.recv.at
		block := uintptr(o.Block(n)) * uintptr(rank)
		switch o.Kind {
		case coll.AllGather, coll.Hypercube, coll.Gather:
			send += block
			if o.Kind == coll.Gather && rank != o.Root {
				send = recv
			}
		case coll.ReduceScatter, coll.Scatter:
			recv += block
			if o.Kind == coll.Scatter && rank != o.Root {
				recv = send
			}
		}
		return send, recv, nil
	}
	if err := w.driver.grow(&w.send, s); err != nil {
		return 0, 0, err
	}
	if err := w.driver.grow(&w.recv, r); err != nil {
		return 0, 0, err
	}
	return w.send.at, w.recv.at, nil
}

// collective warms up, times and checks one collective of one size.
func (w *Worker) collective(q device.Request) (*device.Timing, error) {
	if err := w.joined(); err != nil {
		return nil, err
	}
	o, err := operation(q, w.nccl.ranks)
	if err != nil {
		return nil, err
	}
	send, recv, err := w.buffers(o, q.Room, q.InPlace)
	if err != nil {
		return nil, err
	}
	size := int64(o.Size(w.nccl.ranks))
	places := walk(size, q.Room)
	start := func(i int) error {
		at := uintptr(int64(i) % places * size)
		return w.nccl.start(o, send+at, recv+at, w.driver.stream)
	}
	t, err := w.time(q.Warm, q.Iters, start)
	if err != nil || !q.Check || !exact(o.Reduce, w.nccl.ranks) {
		return t, err
	}
	wrong, err := w.check(o, send, recv, start)
	t.Wrong = &wrong
	return t, err
}

// time runs what start puts into the stream, as nccl-tests does: warm, then all together by the clock, from the moment
// that all ranks are ready.
func (w *Worker) time(warm, iters int, start func(i int) error) (*device.Timing, error) {
	for i := range warm {
		if err := start(i); err != nil {
			return nil, err
		}
	}
	if err := w.barrier(); err != nil {
		return nil, err
	}
	begin := time.Now()
	w.driver.mark(0)
	for i := range max(iters, 1) {
		if err := start(i); err != nil {
			return nil, err
		}
	}
	w.driver.mark(1)
	if err := w.wait(); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	n := float64(max(iters, 1))
	return &device.Timing{Micros: float64(took.Nanoseconds()) / 1e3 / n, GPU: w.driver.elapsed() / n}, nil
}

// wait is until the stream is done. It asks and yields as nccl-tests does: a wait inside the driver would keep a core
// that NCCL's own threads may need, and would not see that NCCL has given up.
func (w *Worker) wait() error {
	const notReady = 600 // of CUDA and HIP
	for {
		code := call(w.driver.f.Query, w.driver.stream)
		if code != notReady {
			return w.driver.must("stream query", code)
		}
		if err := w.nccl.gaveUp(); err != nil {
			return err
		}
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// barrier returns when all ranks have come.
func (w *Worker) barrier() error {
	if err := w.driver.sync(); err != nil {
		return err
	}
	if w.nccl == nil || w.nccl.comm == 0 || w.nccl.ranks < 2 {
		return nil
	}
	if err := w.driver.grow(&w.flag, 8); err != nil {
		return err
	}
	one := coll.Op{Kind: coll.AllReduce, Bytes: 4}
	if err := w.nccl.start(one, w.flag.at, w.flag.at, w.driver.stream); err != nil {
		return err
	}
	return w.wait()
}

// check runs a collective once on known values and counts elements that are not what they must be.
func (w *Worker) check(o coll.Op, send, recv uintptr, start func(i int) error) (int64, error) {
	n, rank, size := w.nccl.ranks, w.nccl.rank, int64(o.Type.Size())
	if o.Recv(n, rank) > 0 { // what is not written must not pass
		if err := w.driver.must("memset",
			call(w.driver.f.Set8, recv, 0xA5, uintptr(o.Recv(n, rank)), w.driver.stream)); err != nil {
			return 0, err
		}
	}
	if s := int64(o.Send(n, rank)); s > 0 {
		if err := w.driver.sync(); err != nil {
			return 0, err
		}
		if err := w.driver.repeat(buffer{at: send, size: s}, 0, s, tile(o, n, rank, 0)); err != nil {
			return 0, err
		}
	}
	if err := w.barrier(); err != nil { // nobody writes into what another has not filled yet
		return 0, err
	}
	if err := start(0); err != nil {
		return 0, err
	}
	if err := w.wait(); err != nil {
		return 0, err
	}
	var wrong int64
	for _, x := range expected(o, n, rank) {
		k, err := w.differing(recv+uintptr(x.at*size), x.count*size, tile(o, n, x.rank, x.start), size)
		if err != nil {
			return wrong, err
		}
		wrong += k
	}
	return wrong, nil
}

// differing counts elements of a part of the GPU's memory that differ from a tile that is repeated.
func (w *Worker) differing(at uintptr, size int64, tile []byte, element int64) (int64, error) {
	const most = 64 << 20
	room := most / int64(len(tile)) * int64(len(tile))
	if int64(cap(w.host)) < min(size, room) {
		w.host = make([]byte, min(size, room))
	}
	var wrong int64
	for done := int64(0); done < size; done += room {
		part := w.host[:min(room, size-done)]
		if err := w.driver.must("copy from the GPU", call(w.driver.f.FromGPU, uintptr(unsafe.Pointer(&part[0])),
			at+uintptr(done), uintptr(len(part)))); err != nil {
			return wrong, err
		}
		for len(part) > 0 {
			k := min(len(part), len(tile))
			if !bytes.Equal(part[:k], tile[:k]) {
				for i := int64(0); i < int64(k); i += element {
					if !bytes.Equal(part[i:i+element], tile[i:i+element]) {
						wrong++
					}
				}
			}
			part = part[k:]
		}
	}
	return wrong, nil
}

// pair sends to one rank, receives from one, or both at once. Other ranks are not asked at all.
func (w *Worker) pair(q device.Request) (*device.Timing, error) {
	if err := w.joined(); err != nil {
		return nil, err
	}
	if err := w.driver.grow(&w.send, q.Bytes); err != nil {
		return nil, err
	}
	if err := w.driver.grow(&w.recv, q.Bytes); err != nil {
		return nil, err
	}
	n, count := w.nccl, uintptr(q.Bytes)
	for _, peer := range []*int{q.Send, q.Receive} {
		if peer != nil && (*peer < 0 || *peer >= n.ranks || *peer == n.rank) {
			return nil, &device.Failure{Text: "no such rank to exchange with"}
		}
	}
	start := func() error {
		call(n.GroupStart)
		var a, b int
		if q.Send != nil {
			a = call(n.Send, w.send.at, count, 0, uintptr(*q.Send), n.comm, w.driver.stream)
		}
		if q.Receive != nil {
			b = call(n.Recv, w.recv.at, count, 0, uintptr(*q.Receive), n.comm, w.driver.stream)
		}
		end := call(n.GroupEnd)
		return n.must("ncclSend, ncclRecv", max(a, b, end))
	}
	for range max(q.Warm, 1) {
		if err := start(); err != nil {
			return nil, err
		}
	}
	if err := w.driver.sync(); err != nil {
		return nil, err
	}
	begin := time.Now()
	w.driver.mark(0)
	for range max(q.Iters, 1) {
		if err := start(); err != nil {
			return nil, err
		}
	}
	w.driver.mark(1)
	if err := w.driver.sync(); err != nil {
		return nil, err
	}
	k := float64(max(q.Iters, 1))
	t := &device.Timing{Micros: float64(time.Since(begin).Nanoseconds()) / 1e3 / k, GPU: w.driver.elapsed() / k}
	if q.Check {
		wrong, err := w.checkPair(q, start)
		t.Wrong = &wrong
		return t, err
	}
	return t, nil
}

// checkPair sends known values once.
func (w *Worker) checkPair(q device.Request, start func() error) (int64, error) {
	o := coll.Op{Kind: coll.SendRecv, Bytes: unit.Bytes(q.Bytes), Type: coll.Int8}
	n, f := w.nccl, w.driver
	if err := f.repeat(w.send, 0, q.Bytes, tile(o, n.ranks, n.rank, 0)); err != nil {
		return 0, err
	}
	if err := f.must("memset", call(f.f.Set8, w.recv.at, 0xA5, uintptr(q.Bytes), f.stream)); err != nil {
		return 0, err
	}
	if err := start(); err != nil {
		return 0, err
	}
	if err := f.sync(); err != nil || q.Receive == nil {
		return 0, err
	}
	return w.differing(w.recv.at, q.Bytes, tile(o, n.ranks, *q.Receive, 0), 1)
}
