package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// Measure is what an order measures.
type Measure string

// What can be measured.
const (
	MeasurePairs      Measure = "pairs"      // every pair, in rounds in which nobody is in two
	MeasureCollective Measure = "collective" // one collective over all nodes of the order
)

// State is how far an order is.
type State string

// States of an order. The last three are final for one that runs once.
const (
	Waiting   State = "waiting" // for its time, or for nodes that are busy
	Running   State = "running"
	Done      State = "done"
	Cancelled State = "cancelled"
	Failed    State = "failed"
)

// Caps bound what a measurement may take, so that it hurts no job.
type Caps struct {
	// Rate is the most that one node sends; 0 is no bound.
	Rate unit.Rate `json:"rate_GBps,omitzero"`
	// Time is the most that one part may take; 0 is defaultTime.
	Time time.Duration `json:"time_ns,omitempty"`
	// Busy is the traffic on the interface above which a node refuses, for a job is running
	// there; 0 is DefaultBusy. With Always it never refuses for that reason.
	Busy   unit.Rate `json:"busy_GBps,omitzero"`
	Always bool      `json:"always,omitempty"`
}

// Bounds of what an order may ask for.
const (
	defaultTime = 20 * time.Second
	MaxTime     = 10 * time.Minute
	DefaultBusy = unit.Rate(50e6)
	MinEvery    = 10 * time.Second
	MaxNodes    = 10_000
	maxMessage  = 1 * unit.GiB
	MaxIters    = 10_000
)

// What is how a part measures: sizes and repetitions.
type What struct {
	Measure Measure `json:"measure"`
	// By is the transport; Best only in orders.
	By Transport `json:"by,omitempty"`
	// Small and Large are the messages of a pair, for latency and for bandwidth.
	Small unit.Bytes `json:"small_bytes,omitempty"`
	Large unit.Bytes `json:"large_bytes,omitempty"`
	// Op, Algo and Sizes are of a collective.
	Op    coll.Kind    `json:"op,omitzero"`
	Algo  string       `json:"algo,omitempty"`
	Sizes []unit.Bytes `json:"sizes_bytes,omitempty"`
	Warm  int          `json:"warm"`
	Iters int          `json:"iters"`
}

// Order asks for a measurement.
type Order struct {
	ID string `json:"id"`
	By string `json:"by"` // whose token gave it
	// Nodes are who takes part; nil is all that are alive when it runs.
	Nodes []Name `json:"nodes,omitempty"`
	What  What   `json:"what"`
	Caps  Caps   `json:"caps"`
	// Every repeats it; 0 is once. From is the first time.
	Every time.Duration `json:"every_ns,omitempty"`
	From  time.Time     `json:"from,omitzero"`
	// Job is what is about to start on the nodes, where the order is a prolog's.
	Job string `json:"job,omitempty"`
	// Rounds bounds the rounds of a sweep over pairs, and the next sweep goes on where the last
	// one ended; 0 is all. AtOnce bounds the pairs that are measured at once; 0 is a whole round.
	Rounds int `json:"rounds,omitempty"`
	AtOnce int `json:"at_once,omitempty"`

	State State     `json:"state"`
	Why   string    `json:"why,omitempty"` // of Failed and Cancelled
	Sweep int       `json:"sweep"`         // how often it ran
	Since time.Time `json:"since,omitzero"`
	// Ran is when the sweep began, Lead who tells what came of a collective, Parts how many there are in it, and Out who
	// was left out of it.
	Ran  time.Time `json:"ran,omitzero"`
	Lead Name      `json:"lead,omitzero"`
	// Over is the transport of the sweep, and OverWhy why it is not a better one, where the order leaves that open.
	Over    Transport `json:"over,omitempty"`
	OverWhy string    `json:"over_why,omitempty"`

	Parts int   `json:"parts,omitempty"`
	Out   []Out `json:"out,omitempty"`
	// Reasons are the commonest of why parts of the sweep were not measured, and FailedParts all that began and failed.
	Reasons     []Reason `json:"reasons,omitempty"`
	FailedParts int      `json:"failed,omitempty"`
}

// MaxReasons is how many reasons an order keeps.
const MaxReasons = 8

// Reason is why parts were not measured.
type Reason struct {
	Parts   int    `json:"parts"`
	LeftOut bool   `json:"left_out,omitempty"` // they did not begin; else they failed
	Nodes   []Name `json:"nodes,omitempty"`    // whom it is about, the first of them where they are many
	Why     string `json:"why"`
}

// Out is a node that a sweep went without.
type Out struct {
	Node Name   `json:"node"`
	Why  string `json:"why"`
	Busy bool   `json:"busy,omitempty"` // it has a job's work to do, which is no fault
	// Lacks tells that it has nothing to be measured by, and that nobody said that it should.
	Lacks bool `json:"lacks,omitempty"`
	// Lost tells that it took part and no other node reached it, which another measurement may show otherwise.
	Lost bool `json:"lost,omitempty"`
}

// Final tells that nothing more will happen to the order.
func (o *Order) Final() bool {
	return o.State == Done || o.State == Cancelled || o.State == Failed
}

// Part is description of one node asked to do now. All nodes of a group get the same but for Rank.
type Part struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Sweep int    `json:"sweep"`
	Round int    `json:"round"`
	// Ranks are the nodes of the group in order; the node finds itself at Rank.
	Ranks []Name `json:"ranks"`
	Rank  int    `json:"rank"`
	// Meet is where rank 0 listens, Secret what lets ranks in; it is made for this part alone.
	Meet   string `json:"meet,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Hosts are where the server finds the ranks, in order: a node connects nowhere else.
	Hosts []string `json:"hosts,omitempty"`
	What  What     `json:"what"`
	Caps  Caps     `json:"caps"`
	// Stop ends the part, begun or not, instead of starting it.
	Stop bool `json:"stop,omitempty"`
}

// MayDial says why a node of the part may not connect to an address: it is of none of the others. The agent has
// replaced names by addresses.
func (p *Part) MayDial(to netip.AddrPort) error {
	if slices.Contains(p.Hosts, to.Addr().WithZone("").String()) {
		return nil
	}
	return fmt.Errorf("%s is no node of part %s", to.Addr(), p.ID)
}

// Answer is what a node sends to a part: it begins, or why not.
type Answer struct {
	Begins bool   `json:"begins"`
	Why    string `json:"why,omitempty"`
	// Busy tells that the node may be asked again: it measures, or carries a job's traffic.
	Busy bool `json:"busy,omitempty"`
	// Meet tells that the refusal is about the place where the group is to meet, and not about the node that refuses.
	Meet bool `json:"meet,omitempty"`
}

// Check refuses what nobody should measure, before anybody is asked to.
func (w *What) Check() error {
	if w.Warm < 0 || w.Iters < 1 || w.Warm > MaxIters || w.Iters > MaxIters {
		return fmt.Errorf("%d warm-up runs and %d iterations: 0 to %d and 1 to %d are allowed", w.Warm, w.Iters, MaxIters,
			MaxIters)
	}
	if err := w.checkBy(); err != nil {
		return err
	}
	switch w.Measure {
	case MeasurePairs:
		if w.Small < 1 || w.Large < w.Small || w.Large > maxMessage {
			return fmt.Errorf("messages of %v and %v: the small one is at least a byte, the large one not smaller and at most "+
				"%v", w.Small, w.Large, maxMessage)
		}
	case MeasureCollective:
		if len(w.Sizes) == 0 || len(w.Sizes) > 64 {
			return fmt.Errorf("%d sizes: 1 to 64 are allowed", len(w.Sizes))
		}
		for _, s := range w.Sizes {
			if s < 0 || s > maxMessage {
				return fmt.Errorf("a size of %v: at most %v is allowed", s, maxMessage)
			}
		}
		if len(w.Algo) > 64 {
			return errors.New("the algorithm's name is too long")
		}
	default:
		return fmt.Errorf("measure %q: %q and %q are known", w.Measure, MeasurePairs, MeasureCollective)
	}
	return nil
}

// Check refuses bounds that bound nothing.
func (c *Caps) Check() error {
	if c.Rate < 0 || c.Busy < 0 || c.Time < 0 || c.Time > MaxTime {
		return fmt.Errorf("a cap of %v and %v: a rate of 0 is no cap, a time is at most %v", c.Rate, c.Time, MaxTime)
	}
	return nil
}

// Bound is the time that a part has.
func (c *Caps) Bound() time.Duration {
	return cmp.Or(c.Time, defaultTime)
}

// Check refuses an order that cannot be carried out. What became of it only a server says.
func (o *Order) Check() error {
	if err := o.What.Check(); err != nil {
		return err
	}
	if err := o.Caps.Check(); err != nil {
		return err
	}
	if o.Caps.Rate > 0 && (o.What.By == RDMA || o.What.By == NCCL) {
		return fmt.Errorf("a rate of at most %v by %s: only TCP can be bounded", o.Caps.Rate, o.What.By)
	}
	if o.Every != 0 && o.Every < MinEvery {
		return fmt.Errorf("every %v: at least %v must lie between two", o.Every, MinEvery)
	}
	if year := o.From.Year(); !o.From.IsZero() && (year < 2000 || year > 2200) { // times are counted in ns from there on
		return fmt.Errorf("from %v: a time from 2000 to 2200 is expected", o.From)
	}
	if len(o.Nodes) > MaxNodes || len(o.Nodes) == 1 {
		return fmt.Errorf("%d nodes: 2 to %d are needed, or none for all", len(o.Nodes), MaxNodes)
	}
	seen := map[Name]bool{}
	for _, n := range o.Nodes {
		if n == "" || seen[n] {
			return fmt.Errorf("node %q of the order: it is named twice, or has no name", n)
		}
		seen[n] = true
	}
	if o.Rounds < 0 || o.AtOnce < 0 {
		return fmt.Errorf("%d rounds and %d pairs at once: neither is below 0", o.Rounds, o.AtOnce)
	}
	if len(o.ID) > 64 || len(o.By) > 256 || len(o.Job) > 256 ||
		strings.ContainsFunc(o.ID+o.By+o.Job, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("a name in the order is too long, or has characters that cannot be printed")
	}
	return nil
}

// Check refuses a part that an agent should not do.
func (p *Part) Check() error {
	if p.ID == "" || len(p.ID) > 128 || len(p.Order) > 64 {
		return errors.New("a part needs an id of up to 128 characters and its order's")
	}
	if p.Stop {
		return nil
	}
	if len(p.Ranks) < 2 || len(p.Ranks) > MaxNodes || p.Rank < 0 || p.Rank >= len(p.Ranks) {
		return fmt.Errorf("rank %d of %d: a group has 2 to %d", p.Rank, len(p.Ranks), MaxNodes)
	}
	if slices.Contains(p.Ranks, "") {
		return errors.New("a rank of the part has no name")
	}
	if len(p.Hosts) != len(p.Ranks) || slices.ContainsFunc(p.Hosts, func(h string) bool { return len(h) > 300 }) {
		return fmt.Errorf("%d hosts of %d ranks; expected a short name or address of each", len(p.Hosts), len(p.Ranks))
	}
	if p.Meet == "" || len(p.Meet) > 300 || len(p.Secret) < 16 || len(p.Secret) > 256 {
		return errors.New("a part needs a rendezvous address and a secret of 16 to 256 characters")
	}
	if err := p.What.Check(); err != nil {
		return err
	}
	return p.Caps.Check()
}

// Group is how the nodes of a part meet, over the interface or address that a node has to measure. Ranks that do not
// come are given up soon: the server asks all of them at the same time.
func (p *Part) Group(bind string) (engine.Config, error) {
	work, err := json.Marshal(p.What)
	return engine.Config{
		Rank: p.Rank, Size: len(p.Ranks), Meet: p.Meet, Job: p.ID, Secret: p.Secret, Work: string(work),
		Transport: engine.TCP, Bind: cmp.Or(bind, p.Hosts[p.Rank]), MayDial: p.MayDial, Host: string(p.Ranks[p.Rank]),
		Timeout: 5 * time.Second, JoinTimeout: min(10*time.Second, p.Caps.Bound()),
	}, err
}
