package query

import (
	"context"
	"errors"
	"fmt"

	"busbar.dev/engine"
	"busbar.dev/measure"
	"busbar.dev/unit"
)

// BenchRDMA measures RDMA between hosts with the programs of perftest, one rail at a time, and names slow hosts, ports
// and links.
type BenchRDMA struct {
	Verb     string   `default:"write" enum:"write,read,send" help:"write, read or send: ib_VERB_bw and ib_VERB_lat are run (default write)."`
	Size     Size     `default:"1M" placeholder:"SIZE" help:"Message size for bandwidth (default 1M)."`
	Small    Size     `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Iters    int      `name:"iters" default:"1000" least:"5" help:"Messages per test (default 1000)."`
	QPs      int      `name:"qps" default:"1" least:"1" most:"1024" help:"Queue pairs per connection (default 1)."`
	GID      int      `name:"gid-index" default:"-1" least:"-1" most:"1024" help:"GID index on every host (default -1: perftest's choice)."`
	Devices  []string `placeholder:"NAME,…" help:"RDMA devices, in the order of rails; mlx5_0/2 is port 2 (default: all active ports, by name)."`
	Cuda     bool     `help:"Measure between GPU memories (--use_cuda=N of perftest): GPU N of a host for rail N."`
	Rounds   int      `least:"1" placeholder:"N" help:"Rounds of disjoint pairs per rail, which is how many others each host is measured with (default all up to 17 hosts, 16 of more)."`
	Perftest string   `placeholder:"DIR" help:"Folder of the perftest programs on every host (default: PATH)."`
}

// RunOn measures between the hosts of a job, one rank each.
func (q BenchRDMA) RunOn(ctx context.Context, env Env, with measure.Programs,
	on Ranks[*measure.RDMA],
) (doc *measure.RDMA, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := &measure.Perftest{
		With: with, Folder: q.Perftest, Verb: q.Verb, Iters: q.Iters, QPs: q.QPs, GID: q.GID, Devices: q.Devices,
		Cuda: q.Cuda, Rounds: q.Rounds,
	}
	if err := pairSizes(q.Size, q.Small, &p.Size, &p.Small); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid = func(n int) error {
		if n < 2 {
			return errors.New("one rank has no partner; expected two or more, one per host")
		}
		return nil
	}
	t.Memory, t.Advice = func(int) unit.Bytes { return 2 * p.Size }, "a smaller --size"
	t.Same = fmt.Sprint("rdma", q)
	t.Star = func(s *engine.Star, keep func([]byte) error) error {
		d, err := p.Ranks(ctx, s, env.progress)
		if err != nil || d == nil {
			return err
		}
		doc = d
		return on.answer(d, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}
