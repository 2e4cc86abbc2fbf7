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

// relayTime is how long the store may take to answer, so that the node hears that it failed.
const relayTime = attempt - 500*time.Millisecond

// listen makes this server one of those that take what nodes send, on a connection of its own, so that what floods it
// ends no other.
func (b *Bus) listen() error {
	if b.side != nil {
		return nil
	}
	cut := func(*nats.Conn, error) { b.cuts.Add(1) }
	nc, err := b.dial(nats.RetryOnFailedConnect(true), nats.DisconnectErrHandler(cut))
	if err != nil {
		return err
	}
	for _, s := range []struct {
		subject, queue string
		take           func(fleet.Name, *nats.Msg)
	}{
		{publishTo + "*", relays, func(node fleet.Name, m *nats.Msg) { b.relay(node, m, b.keep) }},
		{lastTo + "*", relays, func(node fleet.Name, m *nats.Msg) { b.relay(node, m, b.last) }},
		{fleet.Beats, "", b.beat},
		{fleet.ProgressAll, "", b.progress},
	} {
		sub, err := nc.QueueSubscribe(s.subject, s.queue, func(m *nats.Msg) {
			if node, err := fleet.OfSubject(m.Subject); err == nil {
				s.take(node, m)
			}
		})
		if err == nil {
			err = sub.SetPendingLimits(queued, queuedBytes)
		}
		if err != nil {
			nc.Close()
			return err
		}
		b.heard = append(b.heard, sub)
	}
	b.side = nc
	return nil
}

// queued bounds what waits for a server that hears it. It is passed over in a millisecond where it is too much, and
// then another node waits no longer.
const (
	queued      = 256 << 10
	queuedBytes = 64 << 20
)

// relay brings a question of a node's agent to the store, and the answer back.
func (b *Bus) relay(node fleet.Name, m *nats.Msg, pass func(fleet.Name, string, *nats.Msg) (*nats.Msg, error)) {
	if !strings.HasPrefix(m.Reply, inboxOf(node)+".") {
		b.nodes.refuse(node, "questions that no answer would reach")
		return
	}
	b.nodes.later(node, func() {
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
	})
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

// last asks for the node's last message. Who asks begins, or was overtaken: whether it has the name is settled anew.
func (b *Bus) last(node fleet.Name, agent string, _ *nats.Msg) (*nats.Msg, error) {
	if !b.nodes.take(node, "questions for its last event", func(s *sender) bool { return s.passing.Allow() }) {
		return nil, errors.New("node " + string(node) + " asks too often")
	}
	got, err := b.request(context.Background(), nats.NewMsg(directGet+fleet.LogOf(node)), relayTime)
	if err == nil {
		err = b.settle(node, agent, got)
	}
	return got, err
}

// keep stores an event, with headers of our own and no others.
func (b *Bus) keep(node fleet.Name, agent string, m *nats.Msg) (*nats.Msg, error) {
	if !b.nodes.keeps(node, m.Size(), time.Now()) {
		return nil, errors.New("node " + string(node) + " sends more than a node may store")
	}
	out := nats.NewMsg(fleet.LogOf(node))
	out.Data = m.Data
	for _, k := range []string{headSeq, headID, nats.ExpectedLastSubjSeqHdr, headAgent} {
		switch v, err := shortHeader(m, k); {
		case err != nil:
			b.nodes.refuse(node, "headers that are none of an agent's")
			return nil, err
		case v != "":
			out.Header.Set(k, v)
		}
	}
	if id := out.Header.Get(headID); id != "" {
		out.Header.Set(nats.MsgIdHdr, id)
	}
	out.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	if err := b.admit(node, agent); err != nil {
		return nil, err
	}
	return b.request(context.Background(), out, relayTime)
}
