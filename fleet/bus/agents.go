package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

// One agent sends under a name. Which one is in the store: beside every event stands the process that sent it. Another
// process takes the name over only when that one does not answer. Where two are let in at the same moment, by two
// servers, the store takes the event of one, and the other is asked about again.

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

// here is what an agent says of itself.
type here struct {
	Up    float64 `json:"up_s"`
	Where string  `json:"where,omitempty"`
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
	_, err := b.nc.Subscribe(agentAt(b.node, b.agent), func(m *nats.Msg) {
		if m.Reply == "" {
			b.release(&ConflictError{b.node, string(m.Data)})
			return
		}
		if data, err := json.Marshal(here{time.Since(b.began).Seconds(), b.cfg.Where}); err == nil {
			_ = m.Respond(data) // who asked will ask again
		}
	})
	return err
}

// agents are those that send under each name, as a server knows them.
type agents struct {
	mu      sync.Mutex // guards following
	current map[fleet.Name]string
	asking  map[fleet.Name]chan struct{} // closed when it is settled
	seconds map[fleet.Name]string        // that were refused, and who has the name
}

// is tells whether an agent is known to have its name.
func (a *agents) is(node fleet.Name, agent string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	current, known := a.current[node]
	return known && current == agent
}

// takeSeconds are the names whose second agents were refused since the last call.
func (a *agents) takeSeconds() map[fleet.Name]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.seconds
	a.seconds = nil
	return list
}

// admit settles whether an agent sends under a name. It is an error when it does not, or that is not known.
func (b *Bus) admit(node fleet.Name, agent string) error {
	if b.agents.is(node, agent) {
		return nil
	}
	last, err := b.request(context.Background(), nats.NewMsg(directGet+fleet.LogOf(node)), relayTime)
	if err != nil {
		return err
	}
	return b.settle(node, agent, last)
}

// settle does so by the node's last message, one agent of a name at a time.
func (b *Bus) settle(node fleet.Name, agent string, last *nats.Msg) error {
	if status := last.Header.Get("Status"); status != "" && status != statusNone {
		return fmt.Errorf("the store answers %s %s", status, last.Header.Get("Description"))
	}
	a := &b.agents
	a.mu.Lock()
	for a.asking[node] != nil {
		wait := a.asking[node]
		a.mu.Unlock()
		<-wait
		if a.is(node, agent) {
			return nil
		}
		a.mu.Lock()
	}
	if a.current == nil || len(a.current) > 2*fleet.MaxNodes {
		a.current, a.asking = map[fleet.Name]string{}, map[fleet.Name]chan struct{}{}
	}
	settled := make(chan struct{})
	a.asking[node] = settled
	a.mu.Unlock()
	holder, other := last.Header.Get(headAgent), ""
	var err error
	if holder != "" && holder != agent {
		other, err = b.ask(node, holder)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asking, node)
	close(settled)
	switch {
	case err != nil:
		return err
	case other == "":
		a.current[node] = agent
		return nil
	}
	if a.current[node] == agent {
		delete(a.current, node)
	}
	if a.seconds == nil {
		a.seconds = map[fleet.Name]string{}
	}
	a.seconds[node] = other
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
			var h here
			_ = json.Unmarshal(m.Data, &h) // an agent that answers is there, whatever it says
			return h.text(), nil
		case errors.Is(err, nats.ErrNoResponders):
			time.Sleep(herePause) // it may be about to connect again
		case !errors.Is(err, context.DeadlineExceeded):
			return "", err
		}
	}
	return "", nil
}

// text says where an agent is, and since when, in characters that a terminal prints.
func (h here) text() string {
	where := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, h.Where[:min(len(h.Where), fleet.MaxName)])
	up := time.Duration(min(max(h.Up, 0), 1e9) * float64(time.Second)).Round(time.Second)
	return strings.TrimPrefix(fmt.Sprintf("%s, running for %v", where, up), ", ")
}
