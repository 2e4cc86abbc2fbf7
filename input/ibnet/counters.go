package ibnet

import "strings"

// oldNames are what perfquery called counters before 2010, and today's names.
var oldNames = map[string]string{
	"SymbolErrors":        "SymbolErrorCounter",
	"LinkRecovers":        "LinkErrorRecoveryCounter",
	"LinkDowned":          "LinkDownedCounter",
	"RcvErrors":           "PortRcvErrors",
	"RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors",
	"RcvSwRelayErrors":    "PortRcvSwitchRelayErrors",
	"XmtDiscards":         "PortXmitDiscards",
	"XmtConstraintErrors": "PortXmitConstraintErrors",
	"RcvConstraintErrors": "PortRcvConstraintErrors",
	"LinkIntegrityErrors": "LocalLinkIntegrityErrors",
	"ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors",
	"XmtWait":             "PortXmitWait",
}

// errorCounter returns today's name of a counter that should be zero, or "" for
// the traffic counters and the fields that are none. PortXmitWait counts ticks in
// which a port had data and no credit: congestion rather than error, and kept.
func errorCounter(name string) string {
	for _, plain := range []string{"Data", "Pkts", "Select", "Select2", "Bytes", "Octets"} {
		if strings.HasSuffix(name, plain) {
			return ""
		}
	}
	if len(name) == 0 || len(name) > 64 || strings.IndexFunc(name, notInName) >= 0 {
		return ""
	}
	if s, ok := oldNames[name]; ok {
		return s
	}
	return name
}

func notInName(c rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", c)
}

// maxCounters bounds the counters kept of one port; perfquery has fourteen.
const maxCounters = 64

// count records an error counter of a port. Counters only grow, so the greater of
// two readings is the later one.
func (p *port) count(name string, v uint64) {
	if v == 0 {
		return
	}
	s := errorCounter(name)
	if s == "" {
		return
	}
	if p.counters == nil {
		p.counters = make(map[string]uint64, 4)
	}
	if old, ok := p.counters[s]; ok || len(p.counters) < maxCounters {
		p.counters[s] = max(old, v)
	}
}

// counter reads the digits of a value; ok is false when there is none or when it
// does not fit.
func counter(b string) (v uint64, rest string, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		d := uint64(b[i] - '0')
		if v > (1<<64-1-d)/10 {
			return 0, b, false
		}
		v = v*10 + d
	}
	return v, b[i:], i > 0
}
