package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
)

// fact is what conditions in causes' files ask for as @NAME, beyond observations and settings. nil: it is not so.
type fact struct {
	says string
	find func(c *Case, args ...string) *clue
}

var facts = map[string]fact{
	"nccl-log":        {"a log of NCCL was read", yes(func(c *Case) bool { return c.Log != nil })},
	"hosts":           {"hosts that printed records of NCCL", number(func(c *Case) int { return c.hosts })},
	"ranks":           {"ranks of the largest communicator", number(func(c *Case) int { return c.ranks })},
	"broken":          {"NCCL or the program gave up, or somebody says so", yes((*Case).broken)},
	"slow":            {"somebody tells that it is slow", yes(func(c *Case) bool { return c.tells(told.Slow) })},
	"hang":            {"somebody tells that it hangs", yes(func(c *Case) bool { return c.tells(told.Hang) })},
	"crash":           {"somebody tells that it fails", yes(func(c *Case) bool { return c.tells(told.Crash) })},
	"multinode":       {"more than one host takes part", yes((*Case).multinode)},
	"rdma":            {"hosts have NICs for RDMA", yes((*Case).rdma)},
	"ib-seen":         {"InfiniBand is there, whether NCCL names it or not", yes((*Case).ibSeen)},
	"layer":           {"link layer of the RDMA NICs: IB, RoCE, IB+RoCE", stating((*Case).layer)},
	"args":            {"first arguments of all observations of a kind: @args(xid)", (*Case).args},
	"oom-who":         {"GPU and rank that ran out of memory", stating((*Case).oomWho)},
	"tests-apart":     {"processes of nccl-tests that know nothing of each other", shown((*Case).testsApart)},
	"timeout-where":   {"ranks that are missing at a timeout", stating((*Case).timeoutWhere)},
	"timeout-why":     {"how ranks differ at a timeout", stating((*Case).timeoutWhy)},
	"init-incomplete": {"a communicator some ranks did not finish: started, ranks, done", found((*Case).initIncomplete)},
	"lost-peer":       {"a peer that most hosts name whose transfers failed: host", found((*Case).lostPeer)},
	"no-peer-access":  {"GPUs whose driver refuses peer access", yes((*Case).noPeerAccess)},
	"last-error":      {"NCCL's last error", stating(func(c *Case) string { return text(c.First(evidence.LastError)) })},
	"slow-rank":       {"a rank whose steps take longer: rank, factor, percent", found((*Case).slowRank)},
	"status":          {"a completion with a status: @status(12)", (*Case).status},
	"verdict-of":      {"a completion's error: @verdict-of(RETRY_EXC_ERR,12)", (*Case).verdictOf},
	"failed":          {"a call that failed for a reason: @failed(cannot allocate memory,reg_mr)", (*Case).failed},
	"loss-counters":   {"counters of loss or pauses above 1000", shown((*Case).lossCounters)},
	"link-counters":   {"counters of bad links above 10", shown((*Case).linkCounters)},
	"small-mtu":       {"an MTU of at most 1500 on an interface in use", found((*Case).smallMTU)},
	"mtu-differs":     {"MTUs of one interface on several hosts: host, interface, few, most", found((*Case).mtuDiffers)},
	"bad-interface":   {"an interface in use that reaches no other host: name, what it is", found((*Case).badInterface)},
	"named-interface": {"what is wrong with NCCL_SOCKET_IFNAME", stating((*Case).namedInterface)},
	"interface-unreachable": {
		"a rank that connects from an address others cannot reach", found((*Case).unreachable),
	},
	"networks-differ":  {"hosts name different networks", yes((*Case).networksDiffer)},
	"adapters-differ":  {"hosts list different NICs", shown((*Case).adaptersDiffer)},
	"socket-network":   {"NCCL uses sockets", found((*Case).socketNetwork)},
	"socket-loss":      {"sockets are in use where RDMA is, or it is slow", yes((*Case).socketLoss)},
	"gdr-off":          {"GPUDirect RDMA is off, and on nowhere", yes((*Case).gdrOff)},
	"gdr-one-sided":    {"GPUDirect RDMA on some hosts only", yes((*Case).gdrOneSided)},
	"net-bounce":       {"connections over RDMA without GPUDirect", found((*Case).netBounce)},
	"net-direct":       {"connections with GPUDirect", found((*Case).netDirect)},
	"sharers":          {"GPUs of a host and its fewer NICs", found((*Case).sharers)},
	"setting-misspelt": {"a misspelt setting: name, what is meant", found((*Case).settingMisspelt)},
	"stale-settings":   {"settings that releases removed or renamed", found((*Case).staleSettings)},
	"of-predicted": {
		"a stated rate against the prediction: rate, percent, prediction, size, machine", found((*Case).ofPredicted),
	},
	"nic-slow":              {"a host slow with all others", found((*Case).nicSlow)},
	"pair-slow":             {"a slow pair of sound hosts", found((*Case).pairSlow)},
	"uplink-oversubscribed": {"groups slow with each other", found((*Case).uplink)},
	"flat-ring":             {"a ring that changes hosts too often", found((*Case).flatRing)},
	"operations-differ": {
		"watchdogs of ranks name different operations: the operations", found((*Case).operationsDiffer),
	},
	"fewer-nodes-slower": {
		"the same GPUs on fewer nodes are told to be slower: GPUs a node", found((*Case).fewerNodesSlower),
	},
}

// clue is what answers an atom: the values of its placeholders, and the lines and observations it rests on.
type clue struct {
	args   []string
	quotes []finding.Quote
	seen   []*evidence.Observation
}

// arg is one of the values, the first where none is named.
func (k *clue) arg(i int) string {
	i = max(i, 0)
	if k == nil || i >= len(k.args) {
		return ""
	}
	return k.args[i]
}

// lines are those that a clue rests on.
func (k *clue) lines() []finding.Quote {
	list := k.quotes
	for _, o := range k.seen {
		list = append(list, first(o.Quotes, 1)...)
	}
	return list
}

// clueOf is an observation as a clue; none where there is none.
func clueOf(o *evidence.Observation) *clue {
	if o == nil {
		return nil
	}
	return &clue{args: o.Args, seen: []*evidence.Observation{o}}
}

// The forms that facts have.
type finder = func(c *Case, args ...string) *clue

func found(of func(*Case) *clue) finder { return func(c *Case, _ ...string) *clue { return of(c) } }

func yes(of func(*Case) bool) finder {
	return func(c *Case, _ ...string) *clue {
		if !of(c) {
			return nil
		}
		return &clue{}
	}
}

func stating(of func(*Case) string) finder {
	return func(c *Case, _ ...string) *clue {
		text := of(c)
		if text == "" {
			return nil
		}
		return &clue{args: []string{text}}
	}
}

func number(of func(*Case) int) finder {
	return stating(func(c *Case) string { return strconv.Itoa(of(c)) })
}

func shown(of func(*Case) []finding.Quote) finder {
	return func(c *Case, _ ...string) *clue {
		lines := of(c)
		if len(lines) == 0 {
			return nil
		}
		return &clue{quotes: lines}
	}
}

// look gives what answers an atom: an observation, a setting, or a fact; nil: nothing.
func (c *Case) look(a *cause.Atom) *clue {
	switch a.Name[0] {
	case '$':
		if e := c.Env(a.Name[1:]); e != nil {
			return &clue{args: []string{e.Value}, quotes: []finding.Quote{e.Quote}}
		}
		return nil
	case '@':
		key := a.Name + "(" + strings.Join(a.Args, ",")
		k, ok := c.memo[key]
		if !ok {
			args := append(slices.Clone(a.Args), make([]string, max(0, 2-len(a.Args)))...) // facts may rely on two
			k = facts[a.Name[1:]].find(c, args...)
			c.memo[key] = k
		}
		return k
	}
	k := clueOf(c.Find(evidence.Kind(a.Name), func(o *evidence.Observation) bool { return shows(o, a) }))
	if k != nil && a.Op == "" {
		k.seen = c.All(evidence.Kind(a.Name))
	}
	return k
}

// counted reports an atom that compares the number of observations of a kind.
func counted(a *cause.Atom) bool {
	return a.Name[0] != '@' && a.Name[0] != '$' && a.Index < 0 && strings.ContainsAny(a.Op, "<>")
}

// shows reports an observation that is as an atom asks.
func shows(o *evidence.Observation, a *cause.Atom) bool {
	switch {
	case o.Kind == evidence.Line:
		return o.Arg(0) == "(?i)"+a.Value
	case a.Op == "":
		return a.Index < 0 || o.Arg(a.Index) != ""
	case a.Op == "~" && a.Index < 0:
		return a.Matches(text(o))
	}
	return counted(a) || a.Matches(o.Arg(max(a.Index, 0)))
}

// holds reports that an atom is true of the case.
func (c *Case) holds(a *cause.Atom) bool {
	k := c.look(a)
	switch {
	case k == nil:
		return false
	case counted(a):
		return a.Reaches(float64(len(c.All(evidence.Kind(a.Name)))))
	case a.Name[0] == '@' || a.Name[0] == '$':
		return a.Op == "" && a.Index < 0 || a.Matches(k.arg(a.Index))
	}
	return true
}

// placeholder is the value of a placeholder.
func (c *Case) placeholder(a *cause.Atom) string { return c.look(a).arg(a.Index) }

// lines are those that atoms stand for.
func (c *Case) lines(atoms []*cause.Atom) (list []finding.Quote) {
	for _, a := range atoms {
		if k := c.look(a); k != nil {
			list = append(list, k.lines()...)
		}
	}
	return first(list, maxEvidence)
}

// where are the hosts of observations.
func (c *Case) where(atoms []*cause.Atom) string {
	var list []*evidence.Observation
	for _, a := range atoms {
		if k := c.look(a); k != nil {
			list = append(list, k.seen...)
		}
	}
	return hosts(list)
}

// lineSet are lines by file and number.
type lineSet map[finding.Quote]bool

func (s lineSet) addLines(list []finding.Quote) {
	for _, q := range list {
		s[finding.Quote{File: q.File, Line: q.Line, Text: q.Text}] = true
	}
}

// within reports that all lines are in another set, which has more.
func (s lineSet) within(other lineSet) bool {
	for q := range s {
		if !other[q] {
			return false
		}
	}
	return len(s) > 0 && len(s) < len(other)
}

// detect finds what evidence shows of each cause.
func (c *Case) detect(m *cause.Model) (found []finding.Finding) {
	for _, x := range m.Detected() {
		i := slices.IndexFunc(x.Found, func(f cause.Found) bool { return f.When.Holds(c.holds) })
		if i < 0 || x.Found[i].Grade == cause.None {
			continue
		}
		way := &x.Found[i]
		if c.how[x.ID] = way.Grade; way.Grade == cause.Excludes {
			continue
		}
		f := finding.Finding{
			ID: x.ID, Severity: way.Severity, Title: cause.Fill(way.Title, c.placeholder),
			Cause: cause.Fill(way.Why, c.placeholder),
			Fix:   cause.Fill(way.Fix, c.placeholder), Cost: cause.Fill(way.Cost, c.placeholder),
			Where: cause.Fill(way.Where, c.placeholder), Reference: x.See, Confirm: x.Test, Evidence: c.lines(way.Quote),
		}
		if o := c.First(evidence.FailedDevice); o != nil {
			f.Fix, f.Confirm = strings.ReplaceAll(f.Fix, "DEV", o.Arg(0)), strings.ReplaceAll(f.Confirm, "DEV", o.Arg(0))
		}
		if len(way.Hosts) > 0 {
			f.Where = c.where(way.Hosts)
		}
		c.basis[x.ID] = lineSet{}
		c.basis[x.ID].addLines(f.Evidence)
		for _, a := range way.When.Atoms() {
			if c.holds(a) {
				c.basis[x.ID].addLines(c.lines([]*cause.Atom{a}))
			}
		}
		tidy(&f)
		found = append(found, f)
	}
	return append(found, c.audited(found)...)
}

// Atom is what a condition in a cause's file may ask for.
type Atom struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// Atoms are all of them, by name; settings are $NAME beside.
func Atoms() []Atom {
	list := []Atom{
		{"$NAME", "a setting of the environment, a script or a manifest: $NCCL_ALGO=tree"},
		{"line~PATTERN", "a line that matches a regular expression: line~'storm control: dropped'"},
	}
	for _, k := range evidence.Kinds() {
		list = append(list, Atom{k.Name, k.Says})
	}
	for name, f := range facts {
		list = append(list, Atom{"@" + name, f.says})
	}
	slices.SortFunc(list, func(a, b Atom) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// validate refuses causes that ask for what nothing gives.
func validate(m *cause.Model) error {
	known := map[string]bool{}
	for _, a := range Atoms() {
		known[a.Name] = true
	}
	for _, x := range m.Detected() {
		for i := range x.Found {
			atoms, err := x.Found[i].Atoms()
			for _, a := range atoms {
				if line := a.Name == string(evidence.Line); line && a.Op != "~" || !line && a.Name[0] != '$' && !known[a.Name] {
					err = fmt.Errorf("nothing gives %q; expected $SETTING, line~PATTERN or what busbar list causes --atoms "+
						"lists", a.Name)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.ID, err)
			}
		}
	}
	return nil
}
