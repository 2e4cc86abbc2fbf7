package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"

	"github.com/nats-io/nats.go"
)

// One agent sends under a name. Which one is in the store: beside every event stands the process that sent it. Another
// process takes the name over only when that one does not answer. Where two are let in at the same moment, the store
// takes the event of one, and the other is asked about again.

// headAgent is the header that names the process that sends: a name of its own at each start.
const headAgent = "Busbar-Agent"

// A process that is gone is asked within a second and a half, one that hangs for six seconds.
const (
	hereTries = 3
	hereTime  = 2 * time.Second
	herePause = 500 * time.Millisecond
)

// agentAt is where an agent is asked whether it is there, and told that another has its name: in the node's inbox,
// where servers may publish and other nodes may not.
func agentAt(node fleet.Name, agent string) string {
	return inboxOf(node) + ".agent." + fleet.Name(agent).Token()
}

// ConflictError tells that another agent has the name.
type ConflictError struct {
	Node  fleet.Name
	Other string // where it is, and since when
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another agent uses the name %s (%s), so this one stops; give each node its own credentials "+
		"(busbar serve token node NAME), or stop the other agent first", e.Node, e.Other)
}

// Held ends when another agent has this one's name; its cause is a ConflictError.
func (b *Bus) Held() context.Context { return b.held }

// answerHere answers for this agent, until it is told that another has the name.
func (b *Bus) answerHere() error {
	_, err := b.nc.Subscribe(agentAt(b.cfg.Node, b.agent), func(m *nats.Msg) {
		if m.Reply == "" {
			b.release(&ConflictError{b.cfg.Node, string(m.Data)})
			return
		}
		text := fmt.Sprintf("%s, running for %v", b.cfg.Where, time.Since(b.began).Round(time.Second))
		_ = m.Respond([]byte(text)) // who asked will ask again
	})
	return err
}

// isAgent tells whether an agent is known to have its name.
func (b *Bus) isAgent(node fleet.Name, agent string) bool {
	return b.nodes.take(node, "", func(s *sender) bool { return s.agent == agent })
}

// admit settles whether an agent sends under a name. It is an error when it does not, or that is not known.
func (b *Bus) admit(node fleet.Name, agent string) error {
	if b.isAgent(node, agent) {
		return nil
	}
	_, err := b.last(node, agent, nil)
	return err
}

// settle does so by the node's last message.
func (b *Bus) settle(node fleet.Name, agent string, last *nats.Msg) error {
	if status := last.Header.Get("Status"); status != "" && status != statusNone {
		return fmt.Errorf("the store answers %s %s", status, last.Header.Get("Description"))
	}
	holder, other := last.Header.Get(headAgent), ""
	replaced := func(s *sender) bool { return s.agent == agent && s.before == holder }
	if holder != "" && holder != agent && !b.nodes.take(node, "", replaced) {
		var err error
		if other, err = b.ask(node, holder); err != nil {
			return err
		}
	}
	b.nodes.take(node, "", func(s *sender) bool {
		switch {
		case other == "":
			s.agent, s.before = agent, holder
		case s.agent == agent:
			s.agent = ""
		}
		return true
	})
	if other == "" {
		return nil
	}
	if t := b.transient.Load(); t != nil && t.Second != nil {
		t.Second(node, other)
	}
	if agent != "" {
		_ = b.nc.Publish(agentAt(node, agent), []byte(other)) // it is told again when it sends again
	}
	return &ConflictError{node, other}
}

// ask asks an agent whether it is there, and gives what it says of itself; nothing where it does not answer.
func (b *Bus) ask(node fleet.Name, agent string) (string, error) {
	for range hereTries {
		m, err := b.request(context.Background(), nats.NewMsg(agentAt(node, agent)), hereTime)
		switch {
		case err == nil:
			return "it says: " + texttab.Clean(string(m.Data[:min(len(m.Data), fleet.MaxName)])), nil
		case errors.Is(err, nats.ErrNoResponders):
			time.Sleep(herePause) // it may be about to connect again
		case !errors.Is(err, context.DeadlineExceeded):
			return "", err
		}
	}
	return "", nil
}
