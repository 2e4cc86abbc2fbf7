package campaign

import (
	"math/rand/v2"
)

// Play runs a job with failures drawn one by one until so many have come, and returns its useful work over that of all
// nodes without failures: what Outcome says in formulas, by other means. The interval of f must be set.
func (p Pool) Play(f Failures, failures int, seed uint64) float64 {
	x := &player{Pool: p, Failures: f, random: rand.New(rand.NewPCG(seed, 1))}
	for x.failed < failures {
		x.run()
	}
	return x.durable / x.now
}

// player is a job in play. Work is counted in seconds of training on all nodes.
type player struct {
	Pool
	Failures
	random       *rand.Rand
	now          float64
	failed, away int
	repairs      []float64 // when nodes come back
	durable      float64   // work that is saved
}

// sleep lets a time pass in which nodes come back but none fails.
func (x *player) sleep(until float64) {
	x.now = until
	kept := x.repairs[:0]
	for _, at := range x.repairs {
		if at <= until {
			x.away--
		} else {
			kept = append(kept, at)
		}
	}
	x.repairs = kept
}

// pass lets a time pass on so many nodes; false where an interruption came.
func (x *player) pass(took float64, nodes int) bool {
	next := x.now + x.random.ExpFloat64()*float64(x.Pool.Between)/float64(nodes)
	if next >= x.now+took {
		x.sleep(x.now + took)
		return true
	}
	x.sleep(next)
	x.failed++
	if x.random.Float64() < x.Losing {
		x.away++
		x.repairs = append(x.repairs, x.now+x.random.ExpFloat64()*float64(x.Repair))
	}
	return false
}

// restart begins on what nodes there are, and waits where they are too few.
func (x *player) restart() int {
	for {
		nodes := x.running(x.away)
		for nodes == 0 {
			first := x.repairs[0]
			for _, at := range x.repairs {
				first = min(first, at)
			}
			x.sleep(first)
			nodes = x.running(x.away)
		}
		if x.pass(float64(x.Restart), nodes) {
			return nodes
		}
	}
}

// run is a job from a restart to the next one.
func (x *player) run() {
	nodes := x.restart()
	part := float64(nodes) / float64(x.Nodes)
	write, train := float64(x.Write), float64(x.Interval)
	pending := -1.0 // work of a checkpoint that is being written
	work := x.durable
	for {
		// Training while the last checkpoint is written, then the rest.
		if pending >= 0 {
			if !x.pass(write, nodes) {
				return
			}
			x.durable, pending = pending, -1
			if !x.pass(train-write, nodes) {
				return
			}
		} else if !x.pass(train, nodes) {
			return
		}
		work += train * part
		if !x.pass(float64(x.Save), nodes) {
			return
		}
		pending = work
		if x.running(x.away) > nodes { // nodes are back: the job is begun anew when all is saved
			if x.pass(write, nodes) {
				x.durable = pending
			}
			return
		}
		if write == 0 {
			x.durable, pending = pending, -1
		}
	}
}
