package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
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
)

// relay brings what nodes send to the store.
type relay struct {
	bus  *Bus
	free chan struct{}
}

// passing brings a question of a node's agent to the store, and its answer back.
type passing func(node fleet.Name, agent string, m *nats.Msg) (*nats.Msg, error)

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
	r := &relay{bus: b, free: make(chan struct{}, relayAtOnce)}
	for subject, pass := range map[string]passing{publishTo: r.publish, lastTo: r.last} {
		sub, err := nc.QueueSubscribe(subject+"*", relays, func(m *nats.Msg) { r.take(m, pass) })
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
func (r *relay) take(m *nats.Msg, pass passing) {
	node, err := fleet.OfSubject(m.Subject)
	if err != nil || !strings.HasPrefix(m.Reply, inboxOf(node)+".") {
		return // nobody whom an answer would reach
	}
	if !r.bus.meter.enter(node) {
		return
	}
	go func() {
		defer r.bus.meter.leave(node)
		out := nats.NewMsg("")
		agent, err := shortHeader(m, headAgent)
		var got *nats.Msg
		if err == nil {
			got, err = pass(node, agent, m)
		}
		if err != nil {
			out.Header.Set("Status", statusLater)
			out.Header.Set("Description", err.Error())
		} else {
			out.Data, out.Header = got.Data, got.Header
		}
		_ = m.RespondMsg(out) // who asked will ask again
	}()
}

// statusLater is the answer to what cannot be done now.
const statusLater = "429"

// shortHeader is one of our own headers: numbers and identities, as short as names.
func shortHeader(m *nats.Msg, key string) (string, error) {
	v := m.Header.Get(key)
	if v == "" {
		return "", nil
	}
	if _, err := fleet.ParseName(v); err != nil {
		return "", fmt.Errorf("header %s of %d bytes is no number and no identity", key, len(v))
	}
	return v, nil
}

// store asks the store.
func (r *relay) store(ask *nats.Msg) (*nats.Msg, error) {
	r.free <- struct{}{}
	defer func() { <-r.free }()
	return r.bus.request(context.Background(), ask, relayTime)
}

// last asks for the node's last message. Who asks begins, or was overtaken: whether it has the name is settled anew.
func (r *relay) last(node fleet.Name, agent string, _ *nats.Msg) (*nats.Msg, error) {
	got, err := r.store(nats.NewMsg(directGet + fleet.LogOf(node)))
	if err == nil {
		err = r.bus.settle(node, agent, got)
	}
	return got, err
}

// publish stores an event, with headers of our own and no others.
func (r *relay) publish(node fleet.Name, agent string, m *nats.Msg) (*nats.Msg, error) {
	if !r.bus.meter.keep(node, m.Size(), time.Now()) {
		return nil, errors.New("node " + string(node) + " sends more than a node may store")
	}
	out := nats.NewMsg(fleet.LogOf(node))
	out.Data = m.Data
	for _, k := range []string{headSeq, headID, nats.ExpectedLastSubjSeqHdr, headAgent} {
		switch v, err := shortHeader(m, k); {
		case err != nil:
			r.bus.meter.refuse(node, "headers that are none of an agent's")
			return nil, err
		case v != "":
			out.Header.Set(k, v)
		}
	}
	if id := out.Header.Get(headID); id != "" {
		out.Header.Set(nats.MsgIdHdr, id)
	}
	out.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	if err := r.bus.admit(node, agent); err != nil {
		return nil, err
	}
	return r.store(out)
}
