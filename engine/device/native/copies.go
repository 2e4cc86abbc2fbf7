//go:build linux

package native

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"busbar.dev/engine/device"
)

// rate times what start puts into the stream by the stream's events, and gives bytes over the time of one.
func (w *Worker) rate(what string, q device.Request, moved int64, start func() int) (device.Rate, error) {
	d := w.driver
	for range max(q.Warm, 1) {
		if err := d.must(what, start()); err != nil {
			return device.Rate{}, err
		}
	}
	if err := d.sync(); err != nil {
		return device.Rate{}, err
	}
	d.mark(0)
	for range max(q.Iters, 1) {
		if err := d.must(what, start()); err != nil {
			return device.Rate{}, err
		}
	}
	d.mark(1)
	if err := d.sync(); err != nil {
		return device.Rate{}, err
	}
	r := device.Rate{What: what, Bytes: q.Bytes}
	if us := d.elapsed() / float64(max(q.Iters, 1)); us > 0 {
		r.GBps = float64(moved) / us / 1e3
	}
	return r, nil
}

// memory is the rate of the GPU's own memory: a copy counts what is read and what is written.
func (w *Worker) memory(q device.Request) ([]device.Rate, error) {
	d := w.driver
	if err := d.grow(&w.send, q.Bytes); err != nil {
		return nil, err
	}
	if err := d.grow(&w.recv, q.Bytes); err != nil {
		return nil, err
	}
	seed := noise(1<<20, 1)
	if err := d.repeat(w.send, 0, q.Bytes, seed); err != nil {
		return nil, err
	}
	size := uintptr(q.Bytes)
	within, err := w.rate("copy", q, 2*q.Bytes,
		func() int { return call(d.f.Within, w.recv.at, w.send.at, size, d.stream) })
	if err != nil {
		return nil, err
	}
	wrong, err := w.differing(w.recv.at, q.Bytes, seed, 4)
	if err != nil {
		return nil, err
	}
	within.Wrong = &wrong
	write, err := w.rate("write", q, q.Bytes,
		func() int { return call(d.f.Set32, w.recv.at, 0x5A5A5A5A, size/4, d.stream) })
	return []device.Rate{within, write}, err
}

// copies are the rates between pinned memory of the host and the GPU, each way alone and both at once.
func (w *Worker) copies(q device.Request) ([]device.Rate, error) {
	d := w.driver
	if err := d.grow(&w.send, q.Bytes); err != nil {
		return nil, err
	}
	if err := d.grow(&w.recv, q.Bytes); err != nil {
		return nil, err
	}
	size := uintptr(q.Bytes)
	var host [2]uintptr
	for i := range host {
		if err := d.must(fmt.Sprintf("allocation of %d bytes of pinned host memory", q.Bytes),
			call(d.f.HostAlloc, uintptr(unsafe.Pointer(&host[i])), size, 0)); err != nil {
			return nil, err
		}
		defer call(d.f.HostFree, host[i])
	}
	seed := noise(1<<20, 2)
	if err := d.repeat(w.send, 0, q.Bytes, seed); err != nil {
		return nil, err
	}
	from, err := w.rate("from_gpu", q, q.Bytes,
		func() int { return call(d.f.FromLater, host[0], w.send.at, size, d.stream) })
	if err != nil {
		return nil, err
	}
	to, err := w.rate("to_gpu", q, q.Bytes, func() int { return call(d.f.ToGPULater, w.recv.at, host[0], size, d.stream) })
	if err != nil {
		return nil, err
	}
	wrong, err := w.differing(w.recv.at, q.Bytes, seed, 4) // it went to the host and back
	if err != nil {
		return nil, err
	}
	to.Wrong = &wrong
	both, err := w.both("both", q, 2*q.Bytes,
		func() int { return call(d.f.ToGPULater, w.recv.at, host[0], size, d.stream) },
		func() int { return call(d.f.FromLater, host[1], w.send.at, size, d.second) })
	return []device.Rate{to, from, both}, err
}

// both times two directions at once, each in a stream of its own, by the clock of the host.
func (w *Worker) both(what string, q device.Request, moved int64, one, other func() int) (device.Rate, error) {
	d, n := w.driver, max(q.Iters, 1)
	sync := func() error {
		return errors.Join(d.sync(), d.must("stream synchronize", call(d.f.Sync, d.second)))
	}
	r := device.Rate{What: what, Bytes: q.Bytes}
	for _, timed := range []bool{false, true} {
		begin := time.Now()
		for range n {
			if err := d.must(what, max(one(), other())); err != nil {
				return r, err
			}
		}
		if err := sync(); err != nil {
			return r, err
		}
		if took := time.Since(begin); timed && took > 0 {
			r.GBps = float64(moved) * float64(n) / float64(took.Nanoseconds())
		}
	}
	return r, nil
}

// peer copies to another GPU of the host, one way and both at once.
func (w *Worker) peer(q device.Request) ([]device.Rate, []string, error) {
	d := w.driver
	n, err := d.count()
	if err != nil {
		return nil, nil, err
	}
	if q.Other < 0 || q.Other >= n {
		return nil, nil, &device.Failure{Text: fmt.Sprintf("no GPU %d: the driver has %d", q.Other, n)}
	}
	other, ctx, err := d.context(q.Other)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	var can int32
	if err := d.must("peer access", call(d.f.CanPeer, uintptr(unsafe.Pointer(&can)), d.device, other)); err != nil {
		return nil, nil, err
	}
	if can == 0 {
		notes = append(notes, fmt.Sprintf("GPU %d cannot reach GPU %d: copies go through the host's memory", q.GPU, q.Other))
	} else {
		call(d.f.EnablePeer, ctx, 0) // a second time is refused, and does no harm
	}
	if err := d.grow(&w.send, q.Bytes); err != nil {
		return nil, nil, err
	}
	if err := d.grow(&w.recv, q.Bytes); err != nil {
		return nil, nil, err
	}
	there, back, release, err := w.abroad(ctx, q.Bytes)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	seed := noise(1<<20, 3)
	if err := d.repeat(w.send, 0, q.Bytes, seed); err != nil {
		return nil, nil, err
	}
	size := uintptr(q.Bytes)
	out := func() int { return call(d.f.Peer, there.at, ctx, w.send.at, d.ctx, size, d.stream) }
	one, err := w.rate("peer", q, q.Bytes, out)
	if err != nil {
		return nil, nil, err
	}
	// Back again, so that what was moved is seen here.
	if err := d.must("peer copy", call(d.f.Peer, w.recv.at, d.ctx, there.at, ctx, size, d.stream)); err != nil {
		return nil, nil, err
	}
	if err := d.sync(); err != nil {
		return nil, nil, err
	}
	wrong, err := w.differing(w.recv.at, q.Bytes, seed, 4)
	if err != nil {
		return nil, nil, err
	}
	one.Wrong = &wrong
	two, err := w.both("peer_both", q, 2*q.Bytes, out,
		func() int { return call(d.f.Peer, w.recv.at, d.ctx, back.at, ctx, size, d.second) })
	return []device.Rate{one, two}, notes, err
}

// abroad takes two buffers of another GPU.
func (w *Worker) abroad(ctx uintptr, size int64) (a, b buffer, release func(), err error) {
	d := w.driver
	if err = d.must("set current", call(d.f.Current, ctx)); err != nil {
		return a, b, nil, err
	}
	call(d.f.EnablePeer, d.ctx, 0)
	a, err = d.malloc(size)
	if err == nil {
		b, err = d.malloc(size)
	}
	release = func() {
		call(d.f.Current, ctx)
		d.free(&a)
		d.free(&b)
		call(d.f.Current, d.ctx)
	}
	if err != nil {
		release()
		return a, b, nil, err
	}
	return a, b, release, d.must("set current", call(d.f.Current, d.ctx))
}
