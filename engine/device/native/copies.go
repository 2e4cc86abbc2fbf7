//go:build linux

package native

import (
	"fmt"
	"time"

	"busbar.dev/engine/device"
)

// rate times what start puts into the stream by the stream's events, and gives bytes over the time of one.
func (w *Worker) rate(what string, q device.Request, moved int64, start func() int) device.Rate {
	t := w.time(q, w.driver.sync, func(int) { w.driver.must(what, start()) })
	r := device.Rate{What: what, Bytes: q.Bytes}
	if t.GPU > 0 {
		r.GBps = float64(moved) / t.GPU / 1e3
	}
	return r
}

// known fills what is sent with values that are looked for where it is received.
func (w *Worker) known(q device.Request, seed uint64) (send, recv uintptr, tile []byte) {
	send, recv = w.both(q.Bytes, q.Bytes)
	tile = noise(1<<20, seed)
	w.driver.repeat(send, q.Bytes, tile)
	return send, recv, tile
}

// memory is the rate of the GPU's own memory: a copy counts what is read and what is written.
func (w *Worker) memory(q device.Request) []device.Rate {
	d, size := w.driver, uintptr(q.Bytes)
	send, recv, tile := w.known(q, 1)
	within := w.rate("copy", q, 2*q.Bytes, func() int { return call(d.f.Within, recv, send, size, d.stream) })
	within.Wrong = new(w.differing(recv, q.Bytes, tile, 4))
	write := w.rate("write", q, q.Bytes, func() int { return call(d.f.Set32, recv, 0x5A5A5A5A, size/4, d.stream) })
	return []device.Rate{within, write}
}

// copies are the rates between pinned memory of the host and the GPU, each way alone and both at once.
func (w *Worker) copies(q device.Request) []device.Rate {
	d, size := w.driver, uintptr(q.Bytes)
	send, recv, tile := w.known(q, 2)
	var host [2]uintptr
	for i := range host {
		d.do(fmt.Sprintf("allocation of %d bytes of pinned host memory", q.Bytes), d.f.HostAlloc, &host[i], size, 0)
		defer call(d.f.HostFree, host[i])
	}
	out := func() int { return call(d.f.ToGPULater, recv, host[0], size, d.stream) }
	from := w.rate("from_gpu", q, q.Bytes, func() int { return call(d.f.FromLater, host[0], send, size, d.stream) })
	to := w.rate("to_gpu", q, q.Bytes, out)
	to.Wrong = new(w.differing(recv, q.Bytes, tile, 4)) // it went to the host and back
	back := func() int { return call(d.f.FromLater, host[1], send, size, d.second) }
	return []device.Rate{to, from, w.bothWays("both", q, out, back)}
}

// bothWays times two directions at once, each in a stream of its own, by the clock of the host.
func (w *Worker) bothWays(what string, q device.Request, one, other func() int) device.Rate {
	d, n := w.driver, max(q.Iters, 1)
	r := device.Rate{What: what, Bytes: q.Bytes}
	for range 2 { // the first time warms up
		begin := time.Now()
		for range n {
			d.must(what, max(one(), other()))
		}
		d.sync()
		d.do("stream synchronize", d.f.Sync, d.second)
		r.GBps = 2 * float64(q.Bytes) * float64(n) / float64(max(time.Since(begin).Nanoseconds(), 1))
	}
	return r
}

// peer copies to another GPU of the host, one way and both at once.
func (w *Worker) peer(q device.Request) (rates []device.Rate, notes []string) {
	d, size := w.driver, uintptr(q.Bytes)
	if n := d.count(); q.Other < 0 || q.Other >= n {
		refuse("no GPU %d: the driver has %d", q.Other, n)
	}
	other, ctx := d.context(q.Other)
	var can int32
	if d.do("peer access", d.f.CanPeer, &can, d.device, other); can == 0 {
		notes = append(notes, fmt.Sprintf("GPU %d cannot reach GPU %d: copies go through the host's memory", q.GPU, q.Other))
	} else {
		call(d.f.EnablePeer, ctx, 0) // a second time is refused, and does no harm
	}
	send, recv, tile := w.known(q, 3)
	var abroad [2]buffer // of the other GPU
	defer w.on(ctx, func() {
		for i := range abroad {
			d.free(&abroad[i])
		}
	})
	w.on(ctx, func() {
		call(d.f.EnablePeer, d.ctx, 0)
		for i := range abroad {
			d.malloc(&abroad[i], q.Bytes)
		}
	})
	there, back := abroad[0].at, abroad[1].at
	out := func() int { return call(d.f.Peer, there, ctx, send, d.ctx, size, d.stream) }
	one := w.rate("peer", q, q.Bytes, out)
	// Back again, so that what was moved is seen here.
	d.do("peer copy", d.f.Peer, recv, d.ctx, there, ctx, size, d.stream)
	d.sync()
	one.Wrong = new(w.differing(recv, q.Bytes, tile, 4))
	two := w.bothWays("peer_both", q, out,
		func() int { return call(d.f.Peer, recv, d.ctx, back, ctx, size, d.second) })
	return []device.Rate{one, two}, notes
}

// on does something while another GPU is the current one.
func (w *Worker) on(ctx uintptr, do func()) {
	d := w.driver
	defer call(d.f.Current, d.ctx)
	d.do("set current", d.f.Current, ctx)
	do()
}
