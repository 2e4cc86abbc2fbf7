package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/stats"
)

// view is what the server's side has seen.
type view struct {
	mu    sync.Mutex
	calm  []time.Duration // from said to read, before anything was disturbed
	all   []time.Duration
	rough bool
	beats map[fleet.Name]heard
	bad   int
}

type heard struct {
	at   time.Time
	idle bool
	cpu  float64
}

func newView() *view { return &view{beats: map[fleet.Name]heard{}} }

func (v *view) follow(ctx context.Context, b *bus.Bus) {
	_ = b.Follow(ctx, bus.Following{
		Each: func(_ uint64, n *fleet.Event) error {
			if n.Kind != fleet.KindMeasured {
				return nil
			}
			d := time.Since(n.At)
			v.mu.Lock()
			defer v.mu.Unlock()
			v.all = append(v.all, d)
			if !v.rough {
				v.calm = append(v.calm, d)
			}
			return nil
		},
		Bad: func(uint64, string, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.bad++
		},
	})
}

func (v *view) beat(b *fleet.Beat) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.beats[b.Node] = heard{time.Now(), b.Waiting == 0 && b.Part == "", b.CPU}
}

func (v *view) alive() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.beats)
}

func (v *view) disturbed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rough = true
}

// quiet reports whether all nodes have been heard since a time, and had nothing to say or to do.
func (v *view) quiet(since time.Time, nodes int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, h := range v.beats {
		if h.idle && h.at.After(since.Add(3*time.Second)) {
			n++
		}
	}
	return n == nodes
}

// check reads the whole store and holds it against what agents have written down.
func (s *soak) check() error {
	type key struct {
		node fleet.Name
		part string
	}
	results := map[key]int{}
	last := map[fleet.Name]uint64{}
	news := 0
	var wrong []error
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	bad, err := s.hub.Query(ctx, bus.Range{}, func(_ uint64, n *fleet.Event) error {
		news++
		if n.Seq != last[n.Node]+1 && len(wrong) < 20 {
			wrong = append(wrong, fmt.Errorf("%s: number %d follows %d", n.Node, n.Seq, last[n.Node]))
		}
		last[n.Node] = n.Seq
		if n.Kind == fleet.KindMeasured && n.Measured.Failed == "" {
			results[key{n.Node, n.Measured.Part}]++
		}
		return nil
	})
	if err != nil || bad > 0 {
		wrong = append(wrong, fmt.Errorf("reading the store: %d are no news, %w", bad, err))
	}
	for k, n := range results {
		if n > 1 {
			wrong = append(wrong, fmt.Errorf("%s: the result of %s is stored %d times", k.node, k.part, n))
		}
	}
	written := 0
	for _, p := range s.nodes {
		f, err := os.Open(p.part.Ledger)
		if err != nil {
			continue // it has measured nothing
		}
		for sc := bufio.NewScanner(f); sc.Scan(); written++ {
			node, part, _ := strings.Cut(sc.Text(), " ")
			if results[key{fleet.Name(node), part}] == 0 {
				wrong = append(wrong, fmt.Errorf("%s: the result of %s was said and is not stored", node, part))
			}
		}
		f.Close()
	}
	fmt.Fprintf(s.out, "store: %d news of %d nodes, %d results; %d results written down by agents, each stored once: %v; numbers without gaps: %v\n",
		news, len(last), len(results), written, len(wrong) == 0, len(wrong) == 0)
	if len(wrong) > 20 {
		wrong = append(wrong[:20], fmt.Errorf("and %d more", len(wrong)-20))
	}
	if written == 0 {
		wrong = append(wrong, errors.New("nothing was measured"))
	}
	return errors.Join(wrong...)
}

func quantile(d []time.Duration, q float64) time.Duration {
	return stats.Nearest(d, q).Round(10 * time.Microsecond)
}

// report prints what it took.
func (s *soak) report(took time.Duration, deaf int64) {
	w := s.out
	fmt.Fprintf(w, "killed: %d servers, %d processes of agents; lines: %d broken, %d silent\n", s.serverKills.Load(), s.agentKills.Load(), s.cuts.Load(), s.deaf.Load())
	fmt.Fprintf(w, "parts: %d asked, %d begun, %d refused (busy), %d unanswered; seconds in which beats were lost: %d\n", s.asked.Load(), s.begun.Load(), s.refused.Load(), s.absent.Load(), deaf)
	for _, l := range []struct {
		name string
		d    []time.Duration
	}{{"calm", s.view.calm}, {"whole run, outages included", s.view.all}} {
		slices.Sort(l.d)
		fmt.Fprintf(w, "from said to read by the server (%s): %d results, median %v, p90 %v, p99 %v, most %v\n",
			l.name, len(l.d), quantile(l.d, 0.5), quantile(l.d, 0.9), quantile(l.d, 0.99), quantile(l.d, 1))
	}
	for _, g := range []struct {
		name string
		list []*process
		each int
	}{{"servers", s.servers, len(s.servers)}, {"agents", s.nodes, s.agents}} {
		cpu, rss := 0.0, int64(0)
		for _, p := range g.list {
			c, r := p.used()
			cpu, rss = cpu+c, rss+r
		}
		fmt.Fprintf(w, "%s: %.1f%% of one processor (%.3f%% each, of %d on this machine), at most %d MiB of memory (%.1f MiB each)\n",
			g.name, 100*cpu/took.Seconds(), 100*cpu/took.Seconds()/float64(g.each), runtime.NumCPU(), rss>>20, float64(rss)/float64(g.each)/(1<<20))
	}
}
