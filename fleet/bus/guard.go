package bus

import (
	"fmt"
	"maps"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// What one node's credentials may bring to a server of our own, before a server of the fleet reads it. The figures are
// far above what an agent sends that empties a full spool; NATS itself bounds no publisher.
const (
	guardEvery   = 500 * time.Millisecond
	edgeMessages = 5_000 // a second
	edgeBytes    = 1 << 20
	edgeBurst    = 20 // seconds' worth of messages that come at once
	edgeFull     = 80 // and of bytes: more than a spool holds
	edgeConns    = 16 // connections at a time: an agent has one
	shutFor      = time.Minute
)

// Flood is a node whose credentials sent more than a node has to say.
type Flood struct {
	Node fleet.Name
	// What was too much, and how much of it was not taken.
	What    string
	Refused int64
}

// guard holds the connections of each node against what a node may send. A node that exceeds it is cut, and its
// credentials are refused for a minute.
type guard struct {
	conns map[uint64]*watched
	each  map[string]*spent    // by the public key of the credentials
	shut  map[string]time.Time // until when
	last  time.Time
}

// watched is a connection as it was last seen.
type watched struct {
	key             string // empty for servers of the fleet
	node            fleet.Name
	messages, bytes int64
	seen            bool
}

// spent is what credentials may send yet.
type spent struct {
	messages, bytes float64
}

// guarded looks at all connections.
func (s *Server) guarded(now time.Time) {
	g := &s.guard
	if g.conns == nil {
		g.conns, g.each, g.shut, g.last = map[uint64]*watched{}, map[string]*spent{}, map[string]time.Time{}, now
	}
	list, err := s.running().Connz(&server.ConnzOptions{
		Username: true, Account: public(s.keys.account), Limit: 2 * s.cfg.MaxConnections,
	})
	if err != nil {
		return
	}
	s.mu.Lock()
	before := len(g.shut)
	maps.DeleteFunc(g.shut, func(_ string, until time.Time) bool { return now.After(until) })
	changed := len(g.shut) != before
	floods, inside := g.look(list.Conns, now)
	if changed = changed || inside || len(floods) > 0; changed {
		s.signed = "" // the account is given to the server again
	}
	s.mu.Unlock()
	if changed {
		_ = s.Reload()
	}
	for _, f := range floods {
		if s.cfg.OnFlood != nil {
			s.cfg.OnFlood(f)
		}
	}
}

// look takes from what each may send, and returns who has sent more, and whether somebody is connected who is shut out.
func (g *guard) look(list []*server.ConnInfo, now time.Time) (floods []Flood, inside bool) {
	passed := now.Sub(g.last).Seconds()
	g.last = now
	for _, e := range g.each {
		e.messages = min(e.messages+passed*edgeMessages, edgeBurst*edgeMessages)
		e.bytes = min(e.bytes+passed*edgeBytes, edgeFull*edgeBytes)
	}
	open := map[string]int{}
	for _, c := range list {
		w := g.conns[c.Cid]
		if w == nil || c.InMsgs < w.messages { // or of a server that was started again
			w = &watched{}
			w.key, w.node = ownerOf(c.JWT)
			g.conns[c.Cid] = w
		}
		w.seen = true
		messages, bytes := c.InMsgs-w.messages, c.InBytes-w.bytes
		w.messages, w.bytes = c.InMsgs, c.InBytes
		if w.key == "" {
			continue
		}
		e := g.each[w.key]
		if e == nil {
			e = &spent{edgeBurst * edgeMessages, edgeFull * edgeBytes}
			g.each[w.key] = e
		}
		e.messages -= float64(messages)
		e.bytes -= float64(bytes)
		open[w.key]++
		if _, shut := g.shut[w.key]; shut {
			inside = true
			continue
		}
		if f, over := e.over(w.node, messages, bytes, open[w.key]); over {
			floods = append(floods, f)
			g.shut[w.key] = now.Add(shutFor)
		}
	}
	maps.DeleteFunc(g.conns, func(_ uint64, w *watched) bool { gone := !w.seen; w.seen = false; return gone })
	maps.DeleteFunc(g.each, func(key string, e *spent) bool {
		return open[key] == 0 && e.messages == edgeBurst*edgeMessages && e.bytes == edgeFull*edgeBytes
	})
	return floods, inside
}

func (e *spent) over(node fleet.Name, messages, bytes int64, open int) (Flood, bool) {
	switch {
	case open > edgeConns:
		return Flood{node, fmt.Sprintf("more than %d connections at a time", edgeConns), int64(open)}, true
	case e.messages < 0:
		return Flood{node, fmt.Sprintf("more than %d messages per second", edgeMessages), messages}, true
	case e.bytes < 0:
		return Flood{node, "more than 1 MiB a second after the first 80 MiB", bytes}, true
	}
	return Flood{}, false
}

// ownerOf is whose credentials a connection shows; no key where they are no node's.
func ownerOf(text string) (key string, node fleet.Name) {
	u, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return "", ""
	}
	name, err := fleet.ParseName(u.Name)
	if err != nil || !u.Sub.Allow.Contains(fleet.PartOf(name)) {
		return "", ""
	}
	return u.Subject, name
}

// close adds those that are shut out to what is withdrawn for good.
func (g *guard) close(a *jwt.AccountClaims) {
	for key, until := range g.shut {
		if _, withdrawn := a.Revocations[key]; !withdrawn {
			a.RevokeAt(key, until)
		}
	}
}
