package bus

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a node has to say goes through a server of the fleet, and so does its question what it
// said last. A node that could reach the store itself would name where the store's answer goes,
// and the store may write anywhere: an answer that goes to the store's own interface deletes
// the stream, one that goes to another's log speaks in its name. A relay answers to the node's
// own inbox and nowhere else.
const (
	publishTo = "busbar.say."  // and the node: events to keep
	lastTo    = "busbar.last." // and the node: what did I say last
	relays    = "hub"          // the queue group: one of several servers takes each
)

const (
	relayTime   = attempt - 500*time.Millisecond // so that the node hears that it failed
	relayAtOnce = 256                            // at the store; of one node there are relayEach
	// A node may say what a full spool holds at once, and this much a second ever after. A node
	// in the wrong hands would take a day and more to drive out what others sent.
	relayBurst = 64 << 20
	relayRate  = 64 << 10
)

// codeTooMuch is the answer to a node that says more than any has to say. It tries again.
const codeTooMuch = 429

// relay brings what nodes send to the store.
type relay struct {
	bus  *Bus
	free chan struct{}

	mu   sync.Mutex // guards following
	each map[fleet.Name]allowance
}

// allowance is what a node may say yet.
type allowance struct {
	left float64
	at   time.Time
}

// relay makes this server one of those that bring to the store what nodes send.
func (b *Bus) relay() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.relays != nil {
		return nil
	}
	nc, err := b.side(func() {})
	if err != nil {
		return err
	}
	r := &relay{bus: b, free: make(chan struct{}, relayAtOnce), each: map[fleet.Name]allowance{}}
	for subject, build := range map[string]func(fleet.Name, *nats.Msg) *nats.Msg{publishTo: r.publish, lastTo: r.last} {
		sub, err := nc.QueueSubscribe(subject+"*", relays, func(m *nats.Msg) { r.take(m, build) })
		if err == nil {
			err = sub.SetPendingLimits(queued, queuedBytes)
		}
		if err != nil {
			nc.Close()
			return err
		}
	}
	b.relays = nc
	return nil
}

// take passes one question on and its answer back. Several are under way at a time, few of them of one node: a node
// that asks more waits for no turn, it is not heard. So this never waits, and what others send is not held up.
func (r *relay) take(m *nats.Msg, build func(fleet.Name, *nats.Msg) *nats.Msg) {
	node, err := fleet.OfSubject(m.Subject)
	if err != nil || !strings.HasPrefix(m.Reply, inboxOf(node)+".") {
		return // nobody whom an answer would reach
	}
	if !r.bus.meter.enter(node) {
		return
	}
	go func() {
		defer r.bus.meter.leave(node)
		r.free <- struct{}{}
		defer func() { <-r.free }()
		_ = m.RespondMsg(r.answer(node, build(node, m))) // who asked will ask again
	}()
}

func (r *relay) answer(node fleet.Name, ask *nats.Msg) *nats.Msg {
	out := nats.NewMsg("")
	if ask == nil {
		out.Data, _ = json.Marshal(pubAck{Error: &jetstream.APIError{
			Code: codeTooMuch, Description: "node " + string(node) + " sends too many messages at a time",
		}})
		return out
	}
	got, err := r.bus.request(context.Background(), ask, relayTime)
	if err != nil {
		out.Header.Set("Status", "503") // as if nobody had been there
		return out
	}
	out.Data = got.Data
	if got.Header != nil {
		out.Header = got.Header
	}
	return out
}

// last asks for the node's last message.
func (r *relay) last(node fleet.Name, _ *nats.Msg) *nats.Msg {
	return nats.NewMsg(directGet + fleet.LogOf(node))
}

// publish is an event for the store, with the headers that a publisher sets and no others; nil for a node
// that says too much.
func (r *relay) publish(node fleet.Name, m *nats.Msg) *nats.Msg {
	if !r.allow(node, len(m.Data), time.Now()) {
		return nil
	}
	out := nats.NewMsg(fleet.LogOf(node))
	out.Data = m.Data
	for _, k := range []string{headSeq, headID, nats.MsgIdHdr, nats.ExpectedLastSubjSeqHdr} {
		if v := m.Header.Get(k); v != "" {
			out.Header.Set(k, v)
		}
	}
	out.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	return out
}

// allow takes from a node's allowance.
func (r *relay) allow(node fleet.Name, size int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.each[node]
	if !known {
		a = allowance{relayBurst, now}
	}
	a.left = min(relayBurst, a.left+now.Sub(a.at).Seconds()*relayRate)
	a.at = now
	const least = 256 // what the store keeps beside a message
	may := a.left >= float64(size+least)
	if may {
		a.left -= float64(size + least)
	}
	if known || len(r.each) < 2*fleet.MaxNodes {
		r.each[node] = a
	}
	return may
}
