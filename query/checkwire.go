package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"busbar.dev/engine"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Bounds of orders and replies: either side may be in the wrong hands.
const (
	checkMost     = 10 * time.Minute // for one order
	checkText     = 4096             // bytes of why something failed
	checkDevices  = 1024             // GPUs, ports and findings of a node
	checkElements = 1 << 18          // of the sum over all nodes
)

// accepts lists the orders of a rank. Without a check there are those of perftest alone.
func (w *checkWorker) accepts() []string {
	list := []string{"rdma-ports", "rdma-serve", "rdma-run", "rdma-end", "end"}
	if w.q != nil {
		list = append(list, "local", "ports", "pair", "sum")
	}
	return list
}

// decodeOrder reads an order of rank 0. Star.Sit checks the seat.
func (w *checkWorker) decodeOrder(body []byte) (o checkOrder, err error) {
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("an order of rank 0 that cannot be read: %w", err)
	}
	switch accepted := w.accepts(); {
	case !slices.Contains(accepted, o.Do):
		err = fmt.Errorf("%.20q; expected one of %s", o.Do, strings.Join(accepted, ", "))
	case o.Do != "end" && (o.Limit <= 0 || o.Limit > checkMost):
		err = fmt.Errorf("%s within %v; expected up to %v", o.Do, o.Limit, checkMost)
	case strings.HasPrefix(o.Do, "rdma-") != (o.RDMA != nil):
		err = fmt.Errorf("%s with the wrong fields", o.Do)
	case o.RDMA != nil:
		err = o.RDMA.check(o.Do, w.rdma.q.Cuda)
	}
	if err != nil {
		return o, fmt.Errorf("an order of rank 0: %w", err)
	}
	return o, nil
}

// check refuses what no test needs. rdmaWorker.own checks device and port, Star.Reached the address.
func (o *rdmaOrder) check(do string, cuda bool) error {
	switch {
	case len(o.Job) > 64:
		return fmt.Errorf("a job's name of %d bytes", len(o.Job))
	case do != "rdma-ports" && (o.End.GPU < -1 || o.End.GPU >= checkDevices || o.End.GPU >= 0 && !cuda):
		return fmt.Errorf("GPU %d", o.End.GPU)
	case do == "rdma-run" && (o.TCP < 1 || o.TCP > math.MaxUint16):
		return fmt.Errorf("port %d of a server", o.TCP)
	}
	return nil
}

// decodeReply reads a rank's reply to an order: it says what was asked for, and nothing of others.
func (o *checkOrder) decodeReply(body []byte) (r checkReply, err error) {
	if err := json.Unmarshal(body, &r); err != nil {
		return r, err
	}
	r.Failed = r.Failed[:min(len(r.Failed), checkText)]
	cells := map[string]int{"pair": 2, "rdma-run": 1}[o.Do]
	_, by := engine.ParseTransport(r.By)
	unsound := func(m pairs.Measure) bool { return !sound(m, o.Do) }
	switch {
	case r.ID != o.ID:
		err = fmt.Errorf("to order %d; expected %d", r.ID, o.ID)
	case r.Took < 0 || r.Took > checkMost || r.Wrong < 0 || r.Wrong > checkElements || by != nil:
		err = fmt.Errorf("%.20q took %v, with %d wrong elements", r.By, r.Took, r.Wrong)
	case r.Counts.Segments < 0 || r.Counts.Lost < 0 || r.Counts.MSS < 0:
		err = fmt.Errorf("%+v", r.Counts)
	case len(r.Cells) > cells || slices.ContainsFunc(r.Cells, unsound):
		err = fmt.Errorf("%d measurements of %s", len(r.Cells), o.Do)
	case r.TCP < 0 || r.TCP > math.MaxUint16 || len(r.Ports) > checkDevices ||
		slices.ContainsFunc(r.Ports, func(p rdmaPort) bool { return !p.sound() }):
		err = fmt.Errorf("port %d, and %d ports of RDMA", r.TCP, len(r.Ports))
	case r.Local != nil:
		err = r.Local.check(o.Do)
	}
	return r, err
}

// sound tells a measurement of a pair, of which one side is 0 and the other 1; perftest names neither.
func sound(m pairs.Measure, do string) bool {
	figure := func(x float64) bool { return x >= 0 && x < math.MaxFloat32 }
	return (do == "rdma-run" || m.From == 0 && m.To == 1 || m.From == 1 && m.To == 0) && m.Failed == "" &&
		min(m.Segments, m.Lost, int64(m.MSS)) >= 0 && figure(float64(m.Latency)) && figure(float64(m.Rate)) &&
		figure(float64(m.Both))
}

func (p *rdmaPort) sound() bool {
	return p.Device != "" && len(p.Device) <= 64 && p.Port > 0 && p.Port < checkDevices && p.GBps >= 0 && p.Slot >= 0 &&
		max(p.GBps, p.Slot) < 1e6 && len(p.Layer) <= 64
}

// check refuses what a node cannot say of itself, and drops what it says of others.
func (l *checkLocal) check(do string) error {
	switch {
	case do != "local" && do != "ports":
		return errors.New("what a node says of itself, which was not asked for")
	case l.GPUs < 0 || l.Hidden < 0 ||
		max(l.GPUs, l.Hidden, len(l.Findings), len(l.Notes), len(l.Ports), len(l.Measured)) > checkDevices:
		return fmt.Errorf("%d GPUs, %d of them hidden, %d ports, %d findings and %d notes", l.GPUs, l.Hidden, len(l.Ports),
			len(l.Findings), len(l.Notes))
	case len(l.Model)+len(l.Node) > checkText:
		return errors.New("long names")
	}
	l.Wrong = 0
	for i := range l.Findings {
		l.Findings[i].Ranks = nil
	}
	for _, p := range l.Ports {
		if len(p.Name) > 64 || p.Rate < 0 || p.Rate > unit.Rate(math.MaxFloat32) || len(p.Counters) > checkDevices {
			return fmt.Errorf("port %.64q", p.Name)
		}
	}
	return nil
}
