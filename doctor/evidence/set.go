package evidence

import (
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/nccltests"
)

// Bounds on what is kept.
const (
	maxQuotes  = 4    // lines of one observation
	maxQuote   = 300  // bytes of a line
	maxDiffer  = 200  // observations of a kind with different arguments
	maxHosts   = 8192 // hosts, and ranks, of one observation
	maxFigures = 2000
	maxEnv     = 4000
	maxWords   = 64 << 10 // bytes of what people wrote
)

// Observation is something seen, once or many times.
type Observation struct {
	Kind   Kind
	Args   []string // what the recogniser took from the line
	Count  int
	Quotes []finding.Quote // the first of them
	// Hosts and Ranks are who printed it, where the lines say so.
	Hosts map[string]bool
	Ranks map[int]bool
	// GPUs are the bus addresses of those that a report is about.
	GPUs map[string]bool
}

// Arg is an argument, or "" when there are fewer.
func (o *Observation) Arg(i int) string {
	if i >= len(o.Args) {
		return ""
	}
	return o.Args[i]
}

// HostNames are the hosts in order.
func (o *Observation) HostNames() []string { return slices.Sorted(maps.Keys(o.Hosts)) }

// GPUNames are the GPUs in order.
func (o *Observation) GPUNames() []string { return slices.Sorted(maps.Keys(o.GPUs)) }

// Env is a setting: of a program's environment, a script or a manifest.
type Env struct {
	Name, Value string
	Count       int
	Hosts       map[string]bool
	Quote       finding.Quote
}

// Set is everything that was read.
type Set struct {
	Sources []string
	Lines   int // of all texts
	Bytes   int64

	// Unknown counts the lines of NCCL that no reader knows, and lines that speak of
	// an error which no recogniser took.
	Unknown int
	Unread  int             // of them, warnings of NCCL
	Samples []finding.Quote // of them

	Log     *nccllog.Log // nil: no record of NCCL
	Tables  []Table      // of nccl-tests
	Pairs   []Pairs      // of busbar bench pairs, or a fleet's
	Fleet   []FleetFinding
	Cluster *cluster.Cluster
	Given   *cluster.Cluster // where the job ran, as whoever asks says
	Job     *hang.Case       // what a live job says of itself; nil: nothing
	Traces  []string         // files that a profiler wrote
	Figures []Figure
	Steps   map[int]*Steps // times of training steps by rank
	// Training is how fast a training went, by the log that says most of it; nil: none does.
	Training *Training
	Told     bool            // somebody wrote sentences about it
	Failed   bool            // a program says in a short text why it ended
	Asked    bool            // it was said to the program itself
	Talk     map[string]bool // sources in which somebody did
	Words    string          // what those sources say, their sentences only where tools printed too
	Dropped  map[string]int

	Named  string // what an input is that busbar knows and that says nothing here
	Judged bool   // another health check's answer was read whole

	kinds map[Kind][]*Observation
	index map[string]*Observation // by kind and arguments
	env   map[string][]*Env
}

// Table is an output of nccl-tests and the file it stands in.
type Table struct {
	File string
	*nccltests.Table
}

// Blank reports that nothing of what was read is known: neither a tool's output, nor a line that says something, nor a
// person's words.
func (s *Set) Blank() bool {
	return s.Log == nil && s.Cluster == nil && s.Training == nil && (s.Job == nil || s.Job.Empty()) && !s.Told &&
		!s.Asked && !s.Judged && !s.Kernel() && s.Unknown == 0 &&
		len(s.Tables)+len(s.Pairs)+len(s.Fleet)+len(s.Figures)+
			len(s.Steps)+len(s.kinds)+len(s.env) == 0
}

// Kernel reports the kernel's log, of which every line was looked at.
func (s *Set) Kernel() bool { return strings.HasPrefix(s.Named, "a log of the kernel") }

// All are the observations of a kind, in the order of their first lines.
func (s *Set) All(k Kind) []*Observation { return s.kinds[k] }

// First is the first observation of a kind whose argument i begins with any of
// the given words; of no words, the first observation. It is nil when there is
// none.
func (s *Set) First(k Kind, words ...string) *Observation {
	for _, o := range s.kinds[k] {
		if len(words) == 0 {
			return o
		}
		for _, w := range words {
			if strings.EqualFold(o.Arg(0), w) {
				return o
			}
		}
	}
	return nil
}

// Find is the first observation of a kind for which ok holds, nil when there is none.
func (s *Set) Find(k Kind, ok func(*Observation) bool) *Observation {
	if i := slices.IndexFunc(s.kinds[k], ok); i >= 0 {
		return s.kinds[k][i]
	}
	return nil
}

// Has reports whether any of the kinds was seen.
func (s *Set) Has(kinds ...Kind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return len(s.kinds[k]) > 0 })
}

// Count is how often a kind was seen.
func (s *Set) Count(k Kind) int {
	n := 0
	for _, o := range s.kinds[k] {
		n += o.Count
	}
	return n
}

// Env is the first value of a setting, nil when it is nowhere set.
func (s *Set) Env(name string) *Env {
	if list := s.env[name]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// Values are all values of a setting.
func (s *Set) Values(name string) []*Env { return s.env[name] }

// EnvNames are the settings seen.
func (s *Set) EnvNames() []string { return slices.Sorted(maps.Keys(s.env)) }

// addObservation files one sighting.
func (s *Set) addObservation(k Kind, args []string, q finding.Quote, host string, rank int) *Observation {
	var buf [256]byte
	key := append(buf[:0], k...)
	for _, a := range args {
		key = append(append(key, 0), a...)
	}
	o := s.index[string(key)]
	if o == nil {
		if len(s.kinds[k]) >= maxDiffer {
			s.drop(string(k))
			return nil
		}
		o = &Observation{Kind: k, Hosts: map[string]bool{}, Ranks: map[int]bool{}}
		for _, a := range args {
			o.Args = append(o.Args, strings.Clone(a))
		}
		s.kinds[k] = append(s.kinds[k], o)
		s.index[string(key)] = o
	}
	o.Count++
	if len(o.Quotes) < maxQuotes {
		o.Quotes = append(o.Quotes, short(q))
	}
	if host != "" && !o.Hosts[host] && len(o.Hosts) < maxHosts {
		o.Hosts[strings.Clone(host)] = true
	}
	if rank >= 0 && !o.Ranks[rank] && len(o.Ranks) < maxHosts {
		o.Ranks[rank] = true
	}
	return o
}

// setEnv files a setting.
func (s *Set) setEnv(name, value string, q finding.Quote, host string) {
	for _, e := range s.env[name] {
		if e.Value == value {
			e.Count++
			if host != "" && !e.Hosts[host] && len(e.Hosts) < maxHosts {
				e.Hosts[strings.Clone(host)] = true
			}
			return
		}
	}
	if len(s.env) >= maxEnv || len(s.env[name]) >= maxDiffer {
		s.drop("settings")
		return
	}
	e := &Env{Name: strings.Clone(name), Value: strings.Clone(value), Count: 1, Hosts: map[string]bool{}, Quote: short(q)}
	if host != "" {
		e.Hosts[strings.Clone(host)] = true
	}
	s.env[e.Name] = append(s.env[e.Name], e)
}

// rename files what was seen on hosts under names that they do not have.
func (s *Set) rename(names map[string]string) {
	fix := func(hosts map[string]bool) {
		for name, host := range names {
			if hosts[name] {
				delete(hosts, name)
				hosts[host] = true
			}
		}
	}
	for _, list := range s.kinds {
		for _, o := range list {
			fix(o.Hosts)
		}
	}
	for _, list := range s.env {
		for _, e := range list {
			fix(e.Hosts)
		}
	}
}

// addWords keeps what somebody wrote, within bounds.
func (s *Set) addWords(text string) {
	if len(s.Words)+len(text) < maxWords {
		s.Words += text + "\n"
	}
}

func (s *Set) drop(what string) { s.Dropped[what]++ }

// short cuts a line to what a report can show, and lets go of the text it came from.
func short(q finding.Quote) finding.Quote {
	q.Text = strings.TrimSpace(q.Text)
	if len(q.Text) > maxQuote {
		q.Text = strings.ToValidUTF8(q.Text[:maxQuote], "") + " …"
	} else {
		q.Text = strings.ToValidUTF8(strings.Clone(q.Text), "?")
	}
	return q
}
