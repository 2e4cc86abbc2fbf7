package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// filler says things for everybody.
type filler struct {
	js   jetstream.JetStream
	at   time.Time
	seqs map[fleet.Name]uint64
	left int
	size int64
}

// fill makes a store of a fleet whose pairs were all measured once an hour.
func fill(dir string, nodes, news int, crash bool) error {
	began := time.Now()
	srv, err := bus.Start(bus.ServerConfig{Dir: dir, Lazy: true})
	if err != nil {
		return err
	}
	b, err := srv.Connect(bus.Config{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := b.Ensure(ctx); err != nil {
		return err
	}
	creds, err := srv.Keys().Hub()
	if err != nil {
		return err
	}
	nc, err := nats.Connect(srv.URL(), nats.UserCredentialBytes(creds), nats.CustomInboxPrefix("_INBOX.hub"))
	if err != nil {
		return err
	}
	f := &filler{seqs: map[fleet.Name]uint64{}, left: news}
	if f.js, err = jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(8192)); err != nil {
		return err
	}
	sweeps := news/max(1, nodes*(nodes-1)/2) + 1
	f.at = time.Now().Add(-time.Duration(sweeps) * time.Hour)
	if err := f.all(nodes); err != nil {
		return err
	}
	<-f.js.PublishAsyncComplete()
	last, err := b.Last(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes: %d entries, %.0f bytes each with headers, %v\n", nodes, last, float64(f.size)/float64(news),
		time.Since(began).Round(time.Second))
	if crash {
		return nil
	}
	nc.Close()
	b.Close()
	srv.Close()
	return nil
}

// all says what there is to say until it is enough.
func (f *filler) all(nodes int) error {
	names := make([]fleet.Name, nodes)
	for i := range names {
		names[i] = fleet.Name(fmt.Sprintf("gpu%04d", i))
		j := &fleet.Joined{Version: "fill", Meet: fmt.Sprintf("10.0.%d.%d:7643", i/256, i%256), CPUs: 128}
		if err := f.say(names[i], &fleet.Event{Kind: fleet.KindJoined, Joined: j}); err != nil {
			return err
		}
	}
	o := fleet.Order{ID: "0123456789ab", By: "fill", Every: time.Hour, State: fleet.Waiting}
	hub.Fill(&o)
	for sweep := 1; f.left > 0; sweep++ {
		o.Sweep, o.State, o.Ran, o.Since = sweep, fleet.Running, f.at, f.at
		if err := f.say("", &fleet.Event{Kind: fleet.KindOrder, Order: &o}); err != nil {
			return err
		}
		if err := f.sweep(names, sweep); err != nil {
			return err
		}
		o.State, o.Since = fleet.Waiting, f.at
		if err := f.say("", &fleet.Event{Kind: fleet.KindOrder, Order: &o}); err != nil {
			return err
		}
		for i, n := range names { // something always moves
			c := &fleet.Counters{Values: map[string]map[string]uint64{"mlx5_0/1": {
				"out_of_sequence": uint64(sweep * i), "port_rcv_errors": uint64(sweep),
			}}}
			if err := f.say(n, &fleet.Event{Kind: fleet.KindCounters, Counters: c}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep is every pair, measured within an hour.
func (f *filler) sweep(names []fleet.Name, sweep int) error {
	rounds := pairs.Count(len(names))
	for r := range rounds {
		for _, p := range pairs.Round(len(names), r) {
			x, y := names[p[0]], names[p[1]]
			noise := unit.Rate((r*7919 + p[0]*31 + sweep*17) % 1000 * 1_000_003)
			m := &fleet.Measured{
				Order: "0123456789ab", Part: fmt.Sprintf("0123456789ab/%d/%d/%08x", sweep, r, p[0]*65537+sweep), Sweep: sweep,
				Round: r,
				Took:  1234567890,
				Pairs: []fleet.PairSample{
					{From: x, To: y, Rate: 46e9 + noise, Both: 42e9 + noise, Latency: 3_213_000},
					{From: y, To: x, Rate: 46e9 - noise, Both: 42e9 - noise, Latency: 3_213_000},
				},
			}
			if err := f.say(x, &fleet.Event{Kind: fleet.KindMeasured, Measured: m}); err != nil {
				return err
			}
		}
		f.at = f.at.Add(time.Hour / time.Duration(rounds+1))
	}
	return nil
}

// say stores one thing, without waiting for it.
func (f *filler) say(node fleet.Name, n *fleet.Event) error {
	if f.left--; f.left < 0 {
		return nil
	}
	f.seqs[node]++
	// Milliseconds set apart what one node says in a moment.
	n.Seq, n.Node, n.At = f.seqs[node], node, f.at.Add(time.Duration(f.seqs[node]%1000)*time.Millisecond).UTC()
	data, err := fleet.Encode(n)
	if err != nil {
		return err
	}
	m := nats.NewMsg(fleet.HubLog)
	if node != "" {
		m.Subject = fleet.LogOf(node)
	}
	m.Data = data
	id := fmt.Sprintf("0123456789abcdef.%d", n.Seq)
	m.Header.Set("Busbar-Seq", strconv.FormatUint(n.Seq, 10))
	m.Header.Set("Busbar-Id", id)
	// As long as the headers that a speaker sends besides, without what they do.
	m.Header.Set("Filled-Msg-Id", id)
	m.Header.Set("Filled-Expected-Stream", fleet.Stream)
	m.Header.Set("Filled-Expected-Last-Subject-Sequence", strconv.FormatUint(n.Seq, 10))
	f.size += int64(len(data) + 40)
	for k, v := range m.Header {
		f.size += int64(len(k) + len(v[0]) + 4)
	}
	_, err = f.js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute))
	return err
}
