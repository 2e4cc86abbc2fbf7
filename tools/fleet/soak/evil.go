package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

// evil is somebody with one node's credentials who keeps to no rule.
type evil struct {
	url    string
	creds  string // and second are two sets of the same node's: a flood has one of them refused for a minute
	second string
	agents int
	out    io.Writer

	nc   *nats.Conn
	part atomic.Pointer[fleet.Part] // the last that it was asked to do
	seq  atomic.Uint64
	sent atomic.Int64
}

func (e *evil) connect(creds string) (*nats.Conn, error) {
	return nats.Connect(e.url, nats.UserCredentials(creds), nats.Timeout(2*time.Second), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.IgnoreAuthErrorAbort(), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), nats.CustomInboxPrefix("_INBOX.node."+evilName.Token()),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

// run does one thing after the other. A flood has its credentials refused for a minute; what it does then, nobody
// hears.
func (e *evil) run(ctx context.Context, length time.Duration) {
	var err error
	if e.nc, err = e.connect(e.creds); err != nil {
		fmt.Fprintln(e.out, "the hostile node:", err)
		return
	}
	defer e.nc.Close()
	e.join("127.0.0.1:9999")
	_, _ = e.nc.Subscribe(fleet.PartOf(evilName), e.asked)
	ways := []struct {
		name string
		do   func()
	}{
		{"parts that begin and never end", func() { e.beat(nil); time.Sleep(50 * time.Millisecond) }},
		{"results that cannot be, and failures of others", e.lie},
		{"a meeting point where nobody can be", func() { e.join("169.254.169.254:80") }},
		{"two agents under one name", e.twice},
		{"events that are none", e.garbage},
		{"numbers that jump", e.jump},
		{"documents that stand for millions", e.bomb},
		{"beats in others' names", e.forge},
		{"jobs in which others come late", e.accuse},
		{"hundreds of jobs of one member", e.crowd},
		{"findings about others, said as its own health", e.ill},
		{"progress of parts that are not its own", e.pretend},
		{"headers of 60 KB", e.heads},
		{"hundreds of connections", e.connections},
		{"floods on every subject", e.flood},
	}
	for _, w := range ways {
		before := e.sent.Load()
		// Its share of the time, and on a slow machine until the bus has let it in again and something went out.
		end := time.Now().Add(length / time.Duration(len(ways)))
		for ; ctx.Err() == nil && (time.Now().Before(end) ||
			e.sent.Load() == before && time.Since(end) < 10*time.Second); time.Sleep(10 * time.Millisecond) {
			e.beat(nil)
			w.do()
		}
		fmt.Fprintf(e.out, "hostile: %s: %d messages\n", w.name, e.sent.Load()-before)
	}
}

// asked begins everything and does nothing.
func (e *evil) asked(m *nats.Msg) {
	var p fleet.Part
	if json.Unmarshal(m.Data, &p) == nil && !p.Stop {
		e.part.Store(&p)
	}
	_ = m.Respond([]byte(`{"begins":true}`))
}

func (e *evil) publish(subject string, data []byte) {
	if e.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: "_INBOX.node.evil.x", Data: data}) == nil {
		e.sent.Add(1)
	}
}

func (e *evil) beat(change func(*fleet.Beat)) {
	b := &fleet.Beat{Node: evilName, At: time.Now().UTC(), Agent: "evil"}
	if change != nil {
		change(b)
	}
	data, _ := json.Marshal(b)
	e.publish(fleet.BeatOf(evilName), data)
}

// say stores an event, under the conditions of the store.
func (e *evil) say(n *fleet.Event, seq uint64) {
	n.Node, n.At, n.Seq = evilName, time.Now().UTC(), seq
	data, _ := json.Marshal(n)
	e.store(data)
}

func (e *evil) store(data []byte) {
	m := nats.NewMsg("busbar.say." + evilName.Token())
	m.Data = data
	m.Header.Set(nats.MsgIdHdr, strconv.FormatUint(rand.Uint64(), 36))
	if _, err := e.nc.RequestMsg(m, time.Second); err == nil {
		e.sent.Add(1)
	}
}

func (e *evil) join(meet string) {
	e.say(&fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "evil", Meet: meet}}, e.seq.Add(1))
}

func (e *evil) lie() {
	p := e.part.Load()
	if p == nil || len(p.Ranks) < 2 {
		return
	}
	victim := nodeName(rand.IntN(e.agents))
	m := &fleet.Measured{Order: p.Order, Part: p.ID, Sweep: p.Sweep, Round: p.Round}
	switch rand.IntN(4) {
	case 0:
		m.Failed, m.Peer = "it does not answer", victim
	case 1:
		m.Pairs = []fleet.PairSample{{From: victim, To: nodeName(rand.IntN(e.agents)), Rate: 1}}
	case 2:
		m.Pairs = []fleet.PairSample{
			{From: evilName, To: victim, Rate: 1e6, Latency: 1e9}, {From: victim, To: evilName, Rate: 1e6, Latency: 1e9},
		}
	case 3:
		m.Order, m.Pairs = "no such order", []fleet.PairSample{{From: evilName, To: victim, Rate: 1e300}}
	}
	e.say(&fleet.Event{Kind: fleet.KindMeasured, Measured: m}, e.seq.Add(1))
}

func (e *evil) twice() {
	for _, a := range []string{"one", "two"} {
		e.beat(func(b *fleet.Beat) { b.Agent, b.Up = a, rand.Float64()*1e18 })
	}
}

func (e *evil) garbage() {
	for _, text := range []string{
		"", "{", "null", `{"seq":1}`, strings.Repeat("[", 500_000), `{"seq":18446744073709551615,"at":"9999-12-31T23:59:59Z","node":"evil","kind":"left"}`,
		`{"seq":1,"at":"2026-01-01T00:00:00Z","node":"node0000","kind":"left"}`, "\x00\xff\x1b[2J",
	} {
		e.store([]byte(text))
		e.publish(fleet.BeatOf(evilName), []byte(text[:min(len(text), 1000)]))
	}
}

func (e *evil) jump() {
	e.say(&fleet.Event{Kind: fleet.KindLeft}, e.seq.Add(1+rand.Uint64N(1e6)))
	e.say(&fleet.Event{Kind: fleet.KindLeft}, math.MaxUint64-rand.Uint64N(10))
	e.beat(func(b *fleet.Beat) { b.Last, b.Up, b.Waiting = math.MaxUint64, math.MaxFloat64, math.MaxInt })
}

func (e *evil) bomb() {
	var b bytes.Buffer
	b.WriteString(`{"hosts":[`)
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"a-[0-999999]"`)
	}
	b.WriteString(`]}`)
	e.say(&fleet.Event{
		Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "evil", Meet: "127.0.0.1:9", Map: b.Bytes()},
	}, e.seq.Add(1))
	e.say(&fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "evil", Meet: "127.0.0.1:9", Map: []byte(`{"groups":[{"hosts":"a-[0-999999]","type":"t"},{"hosts":"a-[0-999999]"}]}`)}}, e.seq.Add(1))
}

func (e *evil) forge() {
	victim := nodeName(rand.IntN(e.agents))
	data, _ := json.Marshal(&fleet.Beat{Node: victim, At: time.Now(), Agent: "forged", Last: 1 << 40})
	e.publish(fleet.BeatOf(victim), data)   // not permitted
	e.publish(fleet.BeatOf(evilName), data) // permitted, and another's
	e.publish("busbar.say."+victim.Token(), data)
	e.publish(fleet.PartOf(victim), []byte(`{"id":"x","order":"y","stop":true}`))
}

// accuse tells of jobs that others never ran: their ranks wait, and a victim's comes last.
func (e *evil) accuse() {
	victim := nodeName(rand.IntN(e.agents))
	now := time.Now().UTC()
	w := &rates.Window{From: now.Add(-10 * time.Second), To: now}
	for r, host := range []fleet.Name{victim, nodeName(rand.IntN(e.agents)), evilName, victim} {
		w.Members = append(w.Members, rates.Member{
			Comm: "0xfeed", Name: "WORLD", Rank: r, Ranks: 4, Nodes: 4, Global: r, World: 4, Host: string(host), PID: 100 + r,
			Job: "train", Open: 1 - min(r, 1), Since: now.Add(-time.Hour), Waits: "all_reduce",
		})
		p := rates.Part{
			Member: r, Op: "all_reduce", Class: 20, Count: 100, Bytes: 100 << 20, Algo: "RING",
			Proto: "SIMPLE",
		}
		for seq := range uint64(64) {
			late := int64(0)
			if r == 0 {
				late = 90_000
			}
			p.Samples = append(p.Samples, rates.Sample{Seq: seq, At: now.UnixMicro() + int64(seq)*100_000 + late, Us: 1e5})
		}
		w.Parts = append(w.Parts, p)
	}
	e.window(w)
}

// crowd is as many jobs as a beat holds: to be sorted, predicted and shown.
func (e *evil) crowd() {
	now := time.Now().UTC()
	w := &rates.Window{From: now.Add(-2 * time.Second), To: now}
	for i := range 900 {
		w.Members = append(w.Members, rates.Member{
			Comm: fmt.Sprintf("0x%x", rand.Uint64()), Ranks: 1 << 20, Global: -1, Local: -1, World: 1 << 30, PID: i,
			Host: string(nodeName(rand.IntN(e.agents))), Job: fmt.Sprintf("j%d", i),
		})
		w.Parts = append(w.Parts, rates.Part{Member: i, Op: "all_reduce", Class: i % 40, Count: 1, Bytes: 1 << 40})
	}
	w.Parts = append(w.Parts, rates.Part{Member: -1}, rates.Part{Member: math.MaxInt})
	e.window(w)
}

func (e *evil) window(w *rates.Window) {
	if data, err := w.Pack(); err == nil {
		e.beat(func(b *fleet.Beat) { b.Jobs = data })
	}
}

// ill says of others what counts where a node says it of itself.
func (e *evil) ill() {
	victim := string(nodeName(rand.IntN(e.agents)))
	e.beat(func(b *fleet.Beat) {
		for _, kind := range []finding.Kind{"gpu-xid-79", "gpu-ecc", "slow-host", "silent"} {
			b.Health = append(b.Health, finding.Finding{
				ID: string(kind) + ":" + victim, Kind: kind, Severity: finding.Error, Confidence: 1, Nodes: []string{victim},
				Where: victim, Text: victim + " is broken", Fix: "drain " + victim, Since: time.Now().UTC(),
			})
		}
	})
}

func (e *evil) pretend() {
	p := &fleet.Progress{Node: nodeName(rand.IntN(e.agents)), Order: "o", Part: "p", Done: math.MaxInt, Of: -1}
	if asked := e.part.Load(); asked != nil {
		p.Order, p.Part = asked.Order, asked.ID
	}
	data, _ := json.Marshal(p)
	e.publish(fleet.ProgressOf(evilName), data)
}

// heads stores little and says much beside it.
func (e *evil) heads() {
	m := nats.NewMsg("busbar.say." + evilName.Token())
	m.Data, _ = json.Marshal(&fleet.Event{
		Node: evilName, At: time.Now().UTC(), Seq: e.seq.Add(1), Kind: fleet.KindLeft,
	})
	m.Header.Set(nats.MsgIdHdr, strconv.FormatUint(rand.Uint64(), 36))
	m.Header.Set("X-Much", strings.Repeat("x", 60<<10))
	if _, err := e.nc.RequestMsg(m, time.Second); err == nil {
		e.sent.Add(1)
	}
}

func (e *evil) connections() {
	var list []*nats.Conn
	for range 200 {
		nc, err := e.connect(e.second)
		if err != nil || !nc.IsConnected() {
			break // it was noticed
		}
		list = append(list, nc)
		e.sent.Add(1)
	}
	time.Sleep(time.Second)
	for _, nc := range list {
		nc.Close()
	}
}

func (e *evil) flood() {
	var all sync.WaitGroup
	for _, subject := range []string{
		fleet.BeatOf(evilName), fleet.ProgressOf(evilName), "busbar.say." + evilName.Token(),
		"busbar.last." + evilName.Token(),
	} {
		all.Go(func() {
			data := make([]byte, rand.IntN(16<<10))
			for range 2000 {
				e.publish(subject, data)
			}
		})
	}
	all.Wait()
}
