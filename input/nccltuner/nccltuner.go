// Package nccltuner reads and writes the CSV file of NCCL's example tuner plugin,
// and reads the measurements its companion script takes.
//
// The plugin forgives nothing and says nothing: a name it does not know means
// allreduce, ring or simple, names are case-sensitive, an empty field shifts the
// ones after it, and up to NCCL 2.30 "-1" channels, or no line that matches, runs
// the collective on one channel. Read keeps such lines as they are and warns.
//
// Rows are found inside documents too: a line counts when its first field is a
// collective and it has eight to ten fields.
package nccltuner

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// Any matches every number of nodes, ranks, pipelined operations or kind of
// buffer; as a number of channels it means NCCL's own choice.
const Any = -1

// Limits of the plugin, and of what one file may hold.
const (
	maxLine     = 255 // bytes the plugin reads of a line
	maxRules    = 1 << 20
	maxWarnings = 100
)

// The words the plugin knows.
var (
	collectives = []string{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}
	algorithms  = []string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	protocols   = []string{"ll", "ll128", "simple"}
)

// Rule is one line. The first that matches a collective call decides.
type Rule struct {
	Line       int
	Collective string
	Min, Max   uint64 // bytes, both included
	Algorithm  string
	Protocol   string
	Channels   int
	Nodes      int
	Ranks      int
	PipeOps    int // Any where the line has eight fields
	RegBuff    int // 0, 1 or Any
	Fields     int // 8, 9 or 10; Write takes 0 as ten
}

// Config is a file.
type Config struct {
	Rules    []Rule
	Warnings []cluster.Warning
}

// Match reports whether a text holds rules.
func Match(data []byte) bool {
	for line := range bytes.Lines(data) {
		if i := bytes.IndexByte(line, ','); i > 0 && i < 40 {
			if f := splitRule(string(bytes.TrimSpace(line))); isRule(f) {
				if _, err := parseRule(f); err == nil {
					return true
				}
			}
		}
	}
	return false
}

// Read reads the rules of a configuration file or of a document that shows some.
func Read(name string, r io.Reader) (*Config, error) {
	c := &Config{}
	warnf := func(line int, format string, args ...any) {
		if len(c.Warnings) < maxWarnings {
			c.Warnings = append(c.Warnings, cluster.Warning{Source: fmt.Sprintf("%s:%d", name, line), Text: fmt.Sprintf(format, args...)})
		}
	}
	in := lines.New(r)
	for in.Next() {
		text := in.Text()
		f := splitRule(strings.TrimSpace(text))
		if !isRule(f) {
			if looksLikeRule(f) {
				warnf(in.Num(), "collective %q; the plugin knows %s and takes any other word for allreduce", f[0], strings.Join(collectives, ", "))
			}
			continue
		}
		rule, err := parseRule(f)
		if err != nil {
			warnf(in.Num(), "%v; line left out", err)
			continue
		}
		if len(c.Rules) >= maxRules {
			return nil, fmt.Errorf("%s:%d: more than %d rules; expected a tuner configuration", name, in.Num(), maxRules)
		}
		rule.Line = in.Num()
		c.Rules = append(c.Rules, rule)
		if len(c.Warnings) < maxWarnings {
			for _, w := range rule.Traps() {
				warnf(in.Num(), "%s", w)
			}
		}
		if len(text) > maxLine {
			warnf(in.Num(), "line of %d bytes; the plugin reads %d", len(text), maxLine)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, in.Num(), err)
	}
	if len(c.Rules) == 0 {
		return nil, fmt.Errorf("%s: no rule of a tuner configuration; expected lines such as \"allreduce,0,65536,tree,simple,2,1,-1,-1,1\"", name)
	}
	return c, nil
}

// splitRule cuts a line into trimmed fields; a comment has none.
func splitRule(s string) []string {
	if s == "" || s[0] == '#' || strings.Count(s, ",") > 32 {
		return nil
	}
	f := strings.Split(s, ",")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	return f
}

// isRule reports whether fields begin as a rule does.
func isRule(f []string) bool {
	return len(f) >= 8 && slices.Contains(collectives, f[0]) && isNumber(f[1])
}

// looksLikeRule reports whether only the first word keeps fields from being a
// rule.
func looksLikeRule(f []string) bool {
	if len(f) < 8 || len(f) > 10 || !isNumber(f[1]) || !isNumber(f[2]) {
		return false
	}
	return slices.Contains(algorithms, f[3]) && slices.Contains(protocols, f[4])
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

func parseRule(f []string) (Rule, error) {
	if len(f) > 10 {
		return Rule{}, fmt.Errorf("%d fields; expected 8, 9 or 10", len(f))
	}
	if i := slices.Index(f, ""); i >= 0 {
		return Rule{}, fmt.Errorf("field %d is empty, which shifts the fields after it in the plugin; write -1 for any", i+1)
	}
	r := Rule{Collective: f[0], Algorithm: f[3], Protocol: f[4], PipeOps: Any, RegBuff: Any, Fields: len(f)}
	var err error
	if r.Min, err = strconv.ParseUint(f[1], 10, 64); err != nil {
		return r, fmt.Errorf("minimum of %q bytes; expected a decimal number", f[1])
	}
	if r.Max, err = strconv.ParseUint(f[2], 10, 64); err != nil {
		return r, fmt.Errorf("maximum of %q bytes; expected a decimal number", f[2])
	}
	if r.Max < r.Min {
		return r, fmt.Errorf("from %d to %d bytes is no range", r.Min, r.Max)
	}
	for i, dst := range []*int{&r.Channels, &r.Nodes, &r.Ranks, &r.PipeOps, &r.RegBuff} {
		if 5+i >= len(f) {
			break
		}
		n, err := strconv.ParseInt(f[5+i], 10, 32)
		if err != nil || n < Any {
			return r, fmt.Errorf("field %d is %q; expected a number, -1 for any", 6+i, f[5+i])
		}
		*dst = int(n)
	}
	if r.RegBuff > 1 {
		return r, fmt.Errorf("regBuff %d; expected 0, 1 or -1", r.RegBuff)
	}
	return r, nil
}

// Traps lists what the plugin will silently do with the rule that its writer
// hardly wants.
func (r *Rule) Traps() []string {
	var w []string
	if !slices.Contains(algorithms, r.Algorithm) {
		w = append(w, fmt.Sprintf("algorithm %q; the plugin knows %s and takes any other word for ring", r.Algorithm, strings.Join(algorithms, ", ")))
	}
	if !slices.Contains(protocols, r.Protocol) {
		w = append(w, fmt.Sprintf("protocol %q; the plugin knows %s and takes any other word for simple", r.Protocol, strings.Join(protocols, ", ")))
	}
	if r.Channels == Any {
		w = append(w, "channels -1: the example plugin of NCCL 2.27 to 2.30 then runs on one channel; write a number")
	}
	return w
}

// String is the line as the plugin reads it.
func (r *Rule) String() string {
	s := fmt.Sprintf("%s,%d,%d,%s,%s,%d,%d,%d", r.Collective, r.Min, r.Max, r.Algorithm, r.Protocol, r.Channels, r.Nodes, r.Ranks)
	if r.Fields != 8 {
		s += "," + strconv.Itoa(r.PipeOps)
	}
	if r.Fields != 8 && r.Fields != 9 {
		s += "," + strconv.Itoa(r.RegBuff)
	}
	return s
}

// Write writes rules as the plugin reads them. It refuses a rule that the plugin
// would take for another.
func Write(w io.Writer, rules []Rule) error {
	bw := bufio.NewWriter(w)
	fmt.Fprintln(bw, "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff")
	for i := range rules {
		r := &rules[i]
		if !slices.Contains(collectives, r.Collective) || !slices.Contains(algorithms, r.Algorithm) || !slices.Contains(protocols, r.Protocol) {
			return fmt.Errorf("rule %d (%s): a word the plugin does not know; it knows %s; %s; %s", i+1, r, strings.Join(collectives, ", "), strings.Join(algorithms, ", "), strings.Join(protocols, ", "))
		}
		if _, err := parseRule(splitRule(r.String())); err != nil {
			return fmt.Errorf("rule %d (%s): %w", i+1, r, err)
		}
		fmt.Fprintln(bw, r)
	}
	return bw.Flush()
}
