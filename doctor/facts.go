package doctor

import (
	_ "embed" // for the table
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
)

//go:embed facts.csv
var factTable string

// facts are what conditions in causes' files ask for as @NAME, beyond observations and settings; facts.csv says what
// each is.
func (c *Case) facts() map[string]any {
	return map[string]any{
		"nccl-log":              c.Log != nil,
		"hosts":                 c.hosts,
		"ranks":                 c.ranks,
		"trained":               c.Training != nil && c.Training.Lines > 1,
		"broken":                c.broken,
		"slow":                  func() bool { return c.tells(told.Slow) },
		"hang":                  func() bool { return c.tells(told.Hang) },
		"crash":                 func() bool { return c.tells(told.Crash) },
		"multinode":             c.multinode,
		"rdma":                  c.rdma,
		"ib-seen":               c.ibSeen,
		"layer":                 c.layer,
		"args":                  c.args,
		"oom-who":               c.oomWho,
		"tests-apart":           c.testsApart,
		"timeout-where":         c.timeoutWhere,
		"timeout-why":           c.timeoutWhy,
		"first-collective":      c.firstCollective,
		"init-incomplete":       c.initIncomplete,
		"lost-peer":             c.lostPeer,
		"no-peer-access":        c.noPeerAccess,
		"last-error":            func() string { return text(c.First(evidence.LastError)) },
		"slow-rank":             c.slowRank,
		"status":                c.status,
		"verdict-of":            c.verdictOf,
		"failed":                c.failed,
		"loss-counters":         c.lossCounters,
		"link-counters":         c.linkCounters,
		"mtu-differs":           c.mtuDiffers,
		"bad-interface":         c.badInterface,
		"named-interface":       c.namedInterface,
		"interface-unreachable": c.unreachable,
		"networks-differ":       c.networksDiffer,
		"adapters-differ":       c.adaptersDiffer,
		"socket-network":        c.socketNetwork,
		"gdr-one-sided":         c.gdrOneSided,
		"net-bounce":            c.netBounce,
		"net-direct":            c.netDirect,
		"sharers":               c.sharers,
		"setting-misspelt":      c.settingMisspelt,
		"nic-slow":              c.nicSlow,
		"pair-slow":             c.pairSlow,
		"uplink-oversubscribed": c.uplink,
		"flat-ring":             c.flatRing,
		"operations-differ":     c.operationsDiffer,
		"fewer-nodes-slower":    c.fewerNodesSlower,
	}
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

// ask is the answer of a fact; nil: it is not so.
func (c *Case) ask(name string, args []string) *clue {
	text, lines := "", []finding.Quote(nil)
	switch of := c.known[name].(type) {
	case func() *clue:
		return of()
	case func(...string) *clue:
		return of(args...)
	case func() bool:
		if of() {
			return &clue{}
		}
	case bool:
		if of {
			return &clue{}
		}
	case int:
		text = strconv.Itoa(of)
	case func() string:
		text = of()
	case func() []finding.Quote:
		lines = of()
	}
	if text == "" && len(lines) == 0 {
		return nil
	}
	return &clue{args: []string{text}, quotes: lines}
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
			k = c.ask(a.Name[1:], args)
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

// detect finds what evidence shows of each cause.
func (c *Case) detect(m *cause.Model) (found []finding.Finding) {
	for _, x := range m.Detected {
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
		tidy(&f)
		found = append(found, f)
	}
	return append(found, c.audited(found)...)
}

// Atom is what a condition in a cause's file may ask for.
type Atom struct {
	Name string `csv:"name" json:"name"`
	Says string `csv:"says" json:"says"`
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
	for _, f := range csvtable.Must[Atom]("facts.csv", factTable) {
		list = append(list, Atom{"@" + f.Name, f.Says})
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
	for _, x := range m.Detected {
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
