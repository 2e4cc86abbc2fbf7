package engine_test

import (
	"context"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// BenchmarkCalls is the hot paths: a prepared call that two ranks run, by transport and size.
func BenchmarkCalls(b *testing.B) {
	for _, x := range []struct {
		name   string
		groups []*engine.Group
	}{
		{"mem", local(b, 2)},
		{"tcp", joined(b, 2, nil)},
		{"shm", joined(b, 2, func(c *engine.Config) { c.Transport = engine.Shm })},
	} {
		for _, op := range []coll.Op{
			{Kind: coll.AllReduce, Bytes: 8},
			{Kind: coll.AllReduce, Bytes: 64 * unit.KiB},
			{Kind: coll.AllReduce, Bytes: 16 * unit.MiB},
			{Kind: coll.AllGather, Bytes: 64 * unit.KiB},
		} {
			b.Run(x.name+"/"+op.Kind.String()+"/"+op.Bytes.String(), func(b *testing.B) { runs(b, x.groups, op) })
		}
	}
}

func runs(b *testing.B, groups []*engine.Group, op coll.Op) {
	calls := make([]*engine.Call, len(groups))
	for _, err := range each(groups, func(g *engine.Group) (err error) {
		c, err := g.Prepare(nil, op)
		if err != nil {
			return err
		}
		calls[g.Rank()] = c
		var x engine.Buffers
		if x.Send, err = g.Alloc(int(op.Send(len(groups), g.Rank()))); err != nil {
			return err
		}
		if x.Recv, err = g.Alloc(int(op.Recv(len(groups), g.Rank()))); err != nil {
			return err
		}
		return c.Bind(x)
	}) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, c := range calls {
		wg.Go(func() {
			for range b.N {
				if _, err := c.Run(context.Background()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
