package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

const askTime = 10 * time.Second // when the context has no earlier end

// Ask asks a node to do a part, or to stop one, and waits for its answer.
func (b *Bus) Ask(ctx context.Context, node fleet.Name, p *fleet.Part) (*fleet.Answer, error) {
	data, err := fleet.Encode(p)
	if err != nil {
		return nil, fmt.Errorf("part for %s: %w", node, err)
	}
	m := nats.NewMsg(fleet.PartOf(node))
	m.Data = data
	answer, err := b.request(ctx, m, askTime)
	if errors.Is(err, nats.ErrNoResponders) {
		err = errors.New("it is not connected")
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	a, err := fleet.Decode[fleet.Answer](answer.Data)
	if err != nil {
		err = fmt.Errorf("node %s: its answer: %w", node, err)
	}
	return a, err
}

// Serve answers what this node is asked, one question at a time, until Close. do must not wait for the part to end.
func (b *Bus) Serve(do func(*fleet.Part) fleet.Answer) error {
	sub, err := b.nc.Subscribe(fleet.PartOf(b.cfg.Node), func(m *nats.Msg) {
		var a fleet.Answer
		if p, err := fleet.Decode[fleet.Part](m.Data); err != nil {
			a.Why = "the part: " + err.Error()
		} else {
			a = do(p)
		}
		if data, err := fleet.Encode(&a); err == nil {
			_ = m.Respond(data) // who asked will ask again
		}
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(64, 8*fleet.MaxBytes)
}

// Beat says that this node lives, to whoever listens.
func (b *Bus) Beat(beat *fleet.Beat) error {
	beat.Agent = b.agent
	return b.pass(fleet.BeatOf(b.cfg.Node), beat)
}

// Progress says how far this node is.
func (b *Bus) Progress(d *fleet.Progress) error { return b.pass(fleet.ProgressOf(b.cfg.Node), d) }

func (b *Bus) pass(subject string, v any) error {
	data, err := fleet.Encode(v)
	if err != nil {
		return err
	}
	return b.nc.Publish(subject, data)
}
