package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/web"
)

// startKube finds the API server, where the options ask for it.
func (s *running) startKube() (err error) {
	if s.KubeAgents == "" && !s.KubeConditions {
		return nil
	}
	if namespace, name, ok := strings.Cut(s.KubeAgents, "/"); s.KubeAgents != "" &&
		(!ok || namespace == "" || name == "" ||
			strings.ContainsAny(name, "/:") || strings.Contains(namespace, ":")) {
		return fmt.Errorf("--kube-agents %s: expected NAMESPACE/ACCOUNT, the service account of the agents' pods",
			s.KubeAgents)
	}
	switch {
	case s.NoFleet:
		return errors.New("--no-fleet: --kube-agents and --kube-conditions are for a fleet; leave one of both out")
	case s.KubeAgents != "" && len(s.NATS) > 0:
		return errors.New("--kube-agents: the credentials of --nats are its owner's to issue; leave one of both out")
	}
	s.kube, err = kube.Load(kube.Here{Getenv: os.Getenv, ReadFile: os.ReadFile})
	if err != nil {
		return failure.Cannot(fmt.Errorf("--kube-agents, --kube-conditions: %w", err))
	}
	return nil
}

// exchange answers a pod's token with the credentials of its node. So many are reviewed at the same time: anybody who
// reaches the page may ask.
func (s *running) exchange() web.Route {
	turns := make(chan struct{}, 8)
	var mu sync.Mutex
	noted := map[int]time.Time{} // by the code answered
	return web.Route{
		Method: http.MethodPost, Path: client.ExchangePath, Role: web.Public, Body: 1,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
			defer cancel()
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done():
				web.Fail(w, http.StatusServiceUnavailable, "too many tokens at the same time; try again")
				return
			}
			creds, err := s.credentialsFor(ctx, r.Header.Get("Authorization"))
			code, text := http.StatusServiceUnavailable, "the token could not be reviewed; try again"
			switch {
			case err == nil:
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				w.Header().Set("Cache-Control", "no-store")
				_, _ = w.Write(creds) // the client has gone
				return
			case errors.Is(err, kube.ErrRefused):
				code, text = http.StatusUnauthorized, "the token is refused"
			case errors.Is(err, bus.ErrRevoked), errors.Is(err, errName):
				code, text = http.StatusForbidden, "the token's node gets no credentials"
			case errors.Is(err, bus.ErrIssued):
				code, text = http.StatusTooManyRequests, "too many credentials for this node; try again later"
			}
			// What the API server says may hold its secrets, and anybody asks: not to them, and not to fill a log.
			mu.Lock()
			if now := time.Now(); now.Sub(noted[code]) >= 10*time.Second {
				noted[code] = now
				s.Note(fmt.Sprintf("--kube-agents: answered %d: %+q", code, err))
			}
			mu.Unlock()
			web.Fail(w, code, text+"; the server's log says why")
		}),
	}
}

// errName is what errors are about a node whose name a fleet cannot have.
var errName = errors.New("no name of a node")

func (s *running) credentialsFor(ctx context.Context, header string) ([]byte, error) {
	token, _ := strings.CutPrefix(header, "Bearer ")
	node, err := s.kube.NodeOfToken(ctx, token, client.ExchangeAudience, s.KubeAgents)
	if err != nil {
		return nil, err
	}
	name, err := fleet.ParseName(node)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errName, err)
	}
	return s.srv.Keys().Renew(name, client.ExchangeLasts)
}

// nodeCondition is what nodes of Kubernetes get. False is a finding that keeps jobs off the node, Unknown that its
// agent says nothing. Whether that cordons or taints a node is for others to decide.
const nodeCondition = "BusbarHealthy"

// restateCondition is how often a condition is set that has not changed.
const restateCondition = 5 * time.Minute

// conditions keeps the condition of nodes, with an event at each change.
type conditions struct {
	api  *kube.Client
	set  map[fleet.Name]condition
	said string // the last failure
}

// condition is what a node has; the type is empty where Kubernetes has no such node.
type condition struct {
	kube.Condition

	uid string
}

// reportConditions sets them every so often, while this server carries out orders.
func (s *running) reportConditions() {
	c := &conditions{api: s.kube, set: map[fleet.Name]condition{}}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(15 * time.Second):
		}
		if _, reading := s.hub.Reading(); reading || !s.hub.Leads() {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		err := c.round(ctx, s.hub.Nodes(), s.hub.View().Findings(), time.Now())
		cancel()
		if err == nil {
			c.said = ""
		} else if c.said != err.Error() && s.ctx.Err() == nil {
			c.said = err.Error()
			s.Note("conditions of nodes: " + c.said)
		}
	}
}

// round sets those that have changed or are due.
func (c *conditions) round(ctx context.Context, nodes []fleet.NodeState, list []finding.Finding, now time.Time) error {
	there := map[fleet.Name]bool{}
	var failed error
	for i := range nodes {
		n := &nodes[i]
		there[n.Name] = true
		if want, known := conditionOf(n, list); known && ctx.Err() == nil {
			if err := c.one(ctx, n.Name, want, now.UTC().Truncate(time.Second)); err != nil {
				failed = err
			}
		}
	}
	maps.DeleteFunc(c.set, func(n fleet.Name, _ condition) bool { return !there[n] })
	return failed
}

func (c *conditions) one(ctx context.Context, name fleet.Name, want kube.Condition, now time.Time) error {
	old, known := c.set[name]
	if known && now.Sub(old.Seen) < restateCondition && (old.Type == "" || old.Status == want.Status &&
		old.Reason == want.Reason && old.Message == want.Message) {
		return nil
	}
	if !known || now.Sub(old.Seen) >= restateCondition { // the node may be another by now
		n, err := c.api.Node(ctx, string(name))
		if err != nil {
			return err
		}
		old = condition{}
		if n == nil {
			old.Seen = now
			c.set[name] = old
			return nil
		}
		old.uid = n.Metadata.UID
		if i := slices.IndexFunc(n.Status.Conditions,
			func(x kube.Condition) bool { return x.Type == nodeCondition }); i >= 0 {
			old.Condition = n.Status.Conditions[i]
		}
	}
	want.Seen = now
	if old.Status != want.Status {
		want.Changed = now
	}
	if err := c.api.SetCondition(ctx, string(name), want); err != nil {
		return err
	}
	if (old.Status != want.Status || old.Reason != want.Reason) && (old.Status != "" || want.Status == "False") {
		if err := c.api.Event(ctx, string(name), old.uid, want); err != nil {
			return err
		}
	}
	c.set[name] = condition{want, old.uid}
	return nil
}

// conditionOf is what a node's state and the findings about it come to; false where it is not known yet.
func conditionOf(n *fleet.NodeState, list []finding.Finding) (x kube.Condition, known bool) {
	x = kube.Condition{Type: nodeCondition, Status: "True", Reason: "NoKnownProblem", Message: "no known problems"}
	switch n.State {
	case fleet.NodeStarting:
		return x, false
	case fleet.NodeUnreachable:
		x.Status, x.Reason, x.Message = "Unknown", "AgentUnreachable", "the node's agent sends nothing"
	case fleet.NodeLeft:
		x.Status, x.Reason, x.Message = "Unknown", "AgentLeft", "the node's agent has ended"
	}
	var texts []string
	for _, f := range list {
		if !slices.Contains(f.Nodes, string(n.Name)) || f.Kind == health.Unreachable || f.Kind == health.UnreachableFleet {
			continue
		}
		texts = append(texts, f.Text)
		if len(health.Drain([]finding.Finding{f})) > 0 && x.Status != "False" {
			x.Status, x.Reason = "False", camel(string(f.Kind))
		}
	}
	if len(texts) > 0 {
		slices.Sort(texts)
		x.Message = fmt.Sprintf("%.1000s", strings.Join(texts, "; "))
	}
	return x, true
}

// camel writes a kind as Kubernetes writes reasons: slow-host becomes SlowHost.
func camel(kind string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(kind, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
