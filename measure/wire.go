package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/engine"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Bounds of orders and replies: either side may be in the wrong hands.
const (
	mostLimit   = 10 * time.Minute // for one order
	mostText    = 4096             // bytes of why something failed
	mostDevices = 1024             // GPUs, ports and findings of a node
	sumElements = 1 << 18          // of the sum over all members
)

// accepts tells the orders of a member: perftest is run, a node looked at, or GPUs are asked.
func (m *member) accepts(do string) bool {
	switch do {
	case "ports", "pair":
		return m.rdma != nil
	case "look", "later", "sum", "verdict":
		return m.look != nil
	case "gpus", "gpu":
		return m.gpus != nil
	}
	return do == "end"
}

// decodeOrder reads an order of rank 0. Star.Sit checks the seat, Star.Reached the address, and Perftest.pair the port.
func (m *member) decodeOrder(body []byte) (o order, err error) {
	if err := json.Unmarshal(body, &o); err != nil {
		return o, fmt.Errorf("an order of rank 0 that cannot be read: %w", err)
	}
	x := o.RDMA
	switch {
	case !m.accepts(o.Do):
		err = fmt.Errorf("%.20q, which is not part of this measurement", o.Do)
	case o.Do != "end" && (o.Limit <= 0 || o.Limit > mostLimit):
		err = fmt.Errorf("%s within %v; expected up to %v", o.Do, o.Limit, mostLimit)
	case x != nil && o.Do != "pair" || x == nil && o.Do == "pair" && m.look == nil || (o.GPU != nil) != (o.Do == "gpu"):
		err = fmt.Errorf("%s with the wrong fields", o.Do)
	case (o.Verdict != nil) != (o.Do == "verdict") || o.Verdict != nil && !o.Verdict.sound():
		err = fmt.Errorf("%s with the wrong fields", o.Do)
	case len(o.Job) > 64:
		err = fmt.Errorf("a job's name of %d bytes", len(o.Job))
	case x != nil && (x.GPU < -1 || x.GPU >= mostDevices || x.GPU >= 0 && !m.rdma.Cuda):
		err = fmt.Errorf("GPU %d", x.GPU)
	case o.GPU != nil && (o.Worker < 0 || o.Worker >= len(m.gpus) || !slices.Contains(gpuAllowed, o.GPU.Do)):
		err = fmt.Errorf("%.40q of GPU %d, which no measurement needs", o.GPU.Do, o.Worker)
	}
	if err != nil {
		return o, fmt.Errorf("an order of rank 0: %w", err)
	}
	return o, nil
}

// sound bounds a verdict that comes from rank 0.
func (n *CheckNode) sound() bool {
	text := len(n.Host)
	for _, list := range [][]string{n.Reasons, n.Kinds, n.Untested} {
		for _, s := range list {
			text += len(s)
		}
	}
	return text <= mostDevices*mostText && len(n.Reasons)+len(n.Kinds)+len(n.Untested) <= mostDevices &&
		slices.Contains([]string{"healthy", "incomplete", "unhealthy", "suspect", "unreachable"}, n.Verdict)
}

// checkReply refuses a member's reply to an order that does not say what was asked for, or says something of others.
func (o *order) checkReply(r *reply) (err error) {
	r.Failed = r.Failed[:min(len(r.Failed), mostText)]
	_, by := engine.ParseTransport(r.By)
	switch {
	case r.Wrong < 0 || r.Wrong > sumElements || by != nil:
		err = fmt.Errorf("%.20q, with %d wrong elements", r.By, r.Wrong)
	case len(r.Cells) > 2 || len(r.Cells) > 0 && o.Do != "pair" || slices.ContainsFunc(r.Cells, unsound):
		err = fmt.Errorf("%d measurements of %s", len(r.Cells), o.Do)
	case r.GPUs < 0 || r.GPUs > mostDevices || r.GPUs > 0 && o.Do != "gpus" || r.GPU != nil && o.GPU == nil ||
		len(r.Ports) > 0 && o.Do != "ports" || r.Node != nil && o.Do != "look" && o.Do != "later":
		err = fmt.Errorf("what %s does not ask for", o.Do)
	case unsoundPorts(r.Ports):
		err = fmt.Errorf("%d RDMA ports", len(r.Ports))
	case r.Node != nil:
		err = r.Node.check()
	}
	return err
}

// unsound tells what is no measurement of a pair, of which one side is 0 and the other 1.
func unsound(m pairs.Measure) bool {
	figure := func(x float64) bool { return x >= 0 && x < math.MaxFloat32 }
	return m.From < 0 || m.From > 1 || m.To != 1-m.From || m.Failed != "" ||
		min(m.Segments, m.Lost, int64(m.MSS)) < 0 || !figure(float64(m.Latency)) || !figure(float64(m.Rate)) ||
		!figure(float64(m.Both))
}

// unsoundPorts tells what are no RDMA ports of a host.
func unsoundPorts(list []Port) bool {
	return len(list) > mostDevices || slices.ContainsFunc(list, func(p Port) bool {
		end := portEnd(p.Name)
		return end.device == "" || len(p.Name) > 64 || end.port < 1 || end.port > mostDevices || p.Rate < 0 ||
			p.Rate > unit.Rate(math.MaxFloat32) || len(p.Layer) > 64 || len(p.Counters) > mostDevices
	})
}
