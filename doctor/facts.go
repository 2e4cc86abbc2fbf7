package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// facts are what conditions in causes' files ask for as @NAME, beyond observations and settings.
var facts = map[string]any{
	"told": func(c *Case) bool { return c.Told }, "nccl-log": func(c *Case) bool { return c.Log != nil },
	"hosts": func(c *Case) float64 { return float64(c.hosts) }, "ranks": func(c *Case) float64 { return float64(c.ranks) },
	"broken": (*Case).broken, "slow": (*Case).slow, "multinode": (*Case).multinode,
	"multinode-told": (*Case).multinodeTold, "one-host": (*Case).oneHost,
	"rdma": (*Case).rdma, "ib-seen": (*Case).ibSeen, "layer": (*Case).layer, "experiment": (*Case).experiment,
	"two-nodes": (*Case).twoNodes, "many-nodes": (*Case).manyNodes,
	"helps": (*Case).helps, "hurts": (*Case).hurts, "helper": (*Case).helper, "harmful": (*Case).harmful,
	"setting-helps": (*Case).settingHelps, "args": (*Case).args,
	"oom-who": (*Case).oomWho, "oom-hint": (*Case).oomHint,
	"rank-twice": (*Case).rankTwice, "tests-apart": (*Case).testsApart, "zero-tables": (*Case).zeroTables,
	"rank-busy":     (*Case).rankBusy,
	"timeout-lines": (*Case).timeoutLines, "timeout-where": (*Case).timeoutWhere, "timeout-why": (*Case).timeoutWhy,
	"init-incomplete": (*Case).initIncomplete,
	"nccl-code":       (*Case).ncclCode, "last-error": func(c *Case) string { return text(c.First(evidence.LastError)) },
	"slow-node": (*Case).slowNode, "slow-rank": (*Case).slowRank,

	"status": (*Case).status, "verdict-of": (*Case).verdictOf, "failed": (*Case).failed,
	"flushed-only": (*Case).flushedOnly,
	"bad-gid":      (*Case).badGID, "routable-gid": (*Case).routableGID, "same-subnet": (*Case).sharedNet,
	"loss-counters": (*Case).lossCounters, "link-counters": (*Case).linkCounters, "small-mtu": (*Case).smallMTU,
	"active-mtus": (*Case).activeMTUs, "mtu-differs": (*Case).mtuDiffers,

	"bad-interface": (*Case).badInterface, "far-address": (*Case).farAddress, "far-why": (*Case).farWhy,
	"told-virtual": (*Case).toldVirtual, "named-interface": (*Case).namedInterface,
	"devices-differ": (*Case).devicesDiffer, "named-by-ipv4": (*Case).namedByIPv4,
	"interface-unreachable": (*Case).unreachable,
	"layers-mixed":          (*Case).layersMixed,
	"networks-differ":       (*Case).networksDiffer, "adapters-differ": (*Case).adaptersDiffer,
	"releases-differ": (*Case).releasesDiffer,
	"slow-provider":   (*Case).slowProvider, "libfabric-settings": (*Case).libfabricSettings,
	"socket-network": (*Case).socketNetwork, "socket-loss": (*Case).socketLoss, "fast-cluster": (*Case).fastCluster,
	"tcp-like": (*Case).tcpLike,
	"gdr-off":  (*Case).gdrOff, "gdr-one-sided": (*Case).gdrOneSided, "net-bounce": (*Case).netBounce,
	"net-direct": (*Case).netDirect,
	"iommu-on":   (*Case).iommuOn, "corrupts-inside": (*Case).corruptsInside,
	"idle-nics": (*Case).idleNICs, "devices-up": (*Case).devicesUp, "one-device": (*Case).oneDevice,
	"several-nics": (*Case).severalNICs, "sharers": (*Case).sharers,
	"channel-plans": (*Case).channelPlans, "nodes-miscounted": (*Case).nodesMiscounted,
	"setting-differs": (*Case).settingDiffers, "setting-misspelt": (*Case).settingMisspelt,
	"stale-settings": (*Case).staleSettings,

	"figures": (*Case).figureQuotes, "changes": (*Case).changeQuotes, "wire": (*Case).wireQuotes,
	"wire-beats-nccl": (*Case).wireBeatsNCCL, "greatest-drop": (*Case).greatestDrop, "table-drop": (*Case).tableDrop,
	"share-of-line": (*Case).shareOfLine, "above-limit": (*Case).aboveLimit, "near-line": (*Case).nearLine,
	"as-predicted": (*Case).asPredicted, "of-predicted": (*Case).ofPredicted, "slow-wire": (*Case).slowWire,
	"near-line-percent": func(c *Case) string { return fmt.Sprintf("%.0f%%", 100*c.nearLine()) },
	"best-rate": func(c *Case) float64 {
		return c.best(func(f evidence.Figure) bool { return !f.Expected && f.Tool != "wire" })
	},
	"nccl-rate": func(c *Case) float64 {
		return c.best(func(f evidence.Figure) bool { return f.Tool != "wire" && !f.Bits })
	},

	"fleet-fault": (*Case).fleetFault, "pair-dropped": (*Case).pairDropped, "nic-slow": (*Case).nicSlow,
	"pair-slow":        (*Case).pairSlow,
	"rings-off-nvlink": (*Case).ringsOffNVLink, "uplink-oversubscribed": (*Case).uplink, "flat-ring": (*Case).flatRing,
}

// toldOnly are atoms whose lines are sentences that somebody wrote.
var toldOnly = map[string]bool{
	"told": true, "symptom": true, "setting": true, "topic": true, "blames": true, "release": true, "helps": true,
	"hurts": true, "harmful": true, "@figures": true, "@changes": true, "@wire": true,
}

// clue is what a fact found: the values of its placeholders, and the lines it rests on.
type clue struct {
	args   []string
	quotes []finding.Quote
}

func (k *clue) arg(i int) string {
	if k == nil || i >= len(k.args) {
		return ""
	}
	return k.args[i]
}

// look gives what an atom asks for: an observation, a setting, or what a fact says; nil: nothing.
func (c *Case) look(a *cause.Atom) any {
	switch a.Name[0] {
	case '$':
		if e := c.Env(a.Name[1:]); e != nil {
			return e
		}
		return nil
	case '@':
		key := a.Name + "(" + strings.Join(a.Args, ",")
		v, ok := c.memo[key]
		if !ok {
			v = c.fact(a)
			c.memo[key] = v
		}
		return v
	}
	if o := c.Find(evidence.Kind(a.Name), func(o *evidence.Observation) bool { return shows(o, a) }); o != nil {
		return o
	}
	return nil
}

// shows reports an observation that is as an atom asks.
func shows(o *evidence.Observation, a *cause.Atom) bool {
	switch {
	case a.Op == "":
		return a.Index < 0 || o.Arg(a.Index) != ""
	case a.Op == "~" && a.Index < 0:
		return a.Matches(text(o))
	case a.Index < 0 && a.Op != "=":
		return true // their number is compared
	}
	return a.Matches(o.Arg(max(a.Index, 0)))
}

func (c *Case) fact(a *cause.Atom) any {
	args := append(slices.Clone(a.Args), make([]string, max(0, 2-len(a.Args)))...) // facts may rely on two
	switch f := facts[a.Name[1:]].(type) {
	case func(*Case) bool:
		return f(c)
	case func(*Case) float64:
		return f(c)
	case func(*Case) string:
		return f(c)
	case func(*Case, ...string) bool:
		return f(c, args...)
	case func(*Case, ...string) string:
		return f(c, args...)
	case func(*Case) []finding.Quote:
		return f(c)
	case func(*Case) *clue:
		if k := f(c); k != nil {
			return k
		}
	case func(*Case) *evidence.Observation:
		if o := f(c); o != nil {
			return o
		}
	case func(*Case, ...string) *evidence.Observation:
		if o := f(c, args...); o != nil {
			return o
		}
	}
	return nil
}

// holds reports that an atom is true of the case.
func (c *Case) holds(a *cause.Atom) bool {
	switch v := c.look(a).(type) {
	case bool:
		return v
	case float64:
		return a.Reaches(v)
	case string:
		return a.Matches(v)
	case *evidence.Env:
		return a.Op == "" || a.Matches(v.Value)
	case *clue:
		return a.Index < 0 || a.Matches(v.arg(a.Index))
	case []finding.Quote:
		return a.Reaches(float64(len(v)))
	case *evidence.Observation:
		if a.Op != "" && a.Op != "=" && a.Op != "~" && a.Index < 0 {
			return a.Reaches(float64(len(c.All(v.Kind))))
		}
		return a.Name[0] != '@' || a.Index < 0 || a.Matches(v.Arg(a.Index))
	}
	return false
}

// placeholder is the value of a placeholder.
func (c *Case) placeholder(a *cause.Atom) string {
	switch v := c.look(a).(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case string:
		return v
	case *evidence.Env:
		return v.Value
	case *clue:
		return v.arg(max(a.Index, 0))
	case *evidence.Observation:
		return v.Arg(max(a.Index, 0))
	}
	return ""
}

// lines are those that atoms stand for.
func (c *Case) lines(atoms []*cause.Atom) (list []finding.Quote) {
	for _, a := range atoms {
		switch v := c.look(a).(type) {
		case *evidence.Env:
			list = append(list, v.Quote)
		case *clue:
			list = append(list, v.quotes...)
		case []finding.Quote:
			list = append(list, v...)
		case *evidence.Observation:
			if a.Op == "" && a.Name[0] != '@' {
				list = append(list, c.quotes(v.Kind)...)
			} else {
				list = append(list, first(v.Quotes, 1)...)
			}
		}
		if a.Name == "told" {
			list = append(list, c.told(a.Values()...)...)
		}
	}
	return first(list, maxEvidence)
}

// where are the hosts of observations.
func (c *Case) where(atoms []*cause.Atom) string {
	var list []*evidence.Observation
	for _, a := range atoms {
		if v, ok := c.look(a).(*evidence.Observation); ok && a.Op == "" && a.Name[0] != '@' {
			list = append(list, c.All(v.Kind)...)
		} else if ok {
			list = append(list, v)
		}
	}
	return hosts(list)
}

// detect finds what evidence shows of each cause.
func (c *Case) detect(m *cause.Model) (found []finding.Finding) {
	for _, x := range m.Detected() {
		i := slices.IndexFunc(x.Found, func(f cause.Found) bool { return f.When.Holds(c.holds) })
		if i < 0 || x.Found[i].Grade == cause.None {
			continue
		}
		way := &x.Found[i]
		f := finding.Finding{
			ID: x.ID, Severity: way.Severity, Title: cause.Fill(way.Title, c.placeholder),
			Cause: cause.Fill(way.Why, c.placeholder),
			Fix:   cause.Fill(way.Fix, c.placeholder), Cost: cause.Fill(way.Cost, c.placeholder),
			Where: cause.Fill(way.Where, c.placeholder), Reference: x.See, Evidence: c.lines(way.Quote),
		}
		if len(way.Hosts) > 0 {
			f.Where = c.where(way.Hosts)
		}
		c.how[x.ID] = way.Grade
		c.lined[x.ID] = slices.ContainsFunc(way.Quote,
			func(a *cause.Atom) bool { return !toldOnly[a.Name] && len(c.lines([]*cause.Atom{a})) > 0 })
		tidy(&f)
		found = append(found, f)
	}
	return append(found, c.audited(found)...)
}

// kinds are the observations that built-in causes ask for.
var kinds = sync.OnceValues(func() (map[string]bool, error) {
	m, err := cause.New()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, x := range m.Detected() {
		for i := range x.Found {
			atoms, err := x.Found[i].Atoms()
			if err != nil {
				return nil, err
			}
			for _, a := range atoms {
				known[a.Name] = true
			}
		}
	}
	return known, nil
})

// validate refuses causes that ask for what nothing gives.
func validate(m *cause.Model) error {
	known, err := kinds()
	if err != nil {
		return err
	}
	for _, x := range m.Detected() {
		for i := range x.Found {
			atoms, err := x.Found[i].Atoms()
			for _, a := range atoms {
				if a.Name[0] != '$' && !known[a.Name] || a.Name[0] == '@' && facts[a.Name[1:]] == nil {
					err = fmt.Errorf("nothing gives %q; expected $SETTING or what the built-in causes ask for", a.Name)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.ID, err)
			}
		}
	}
	return nil
}
