package cause

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// Condition is what must hold of the evidence: atoms joined by and, or and not.
//
//	shm-failure and not xid
//	symptom=hang,timeout and ($NCCL_P2P_DISABLE=1 or @multinode)
type Condition struct {
	Op   string // and, or, not; "": an atom
	List []*Condition
	*Atom
}

// Atom asks for one piece of evidence: a kind of observation, a $SETTING of the environment, or an @fact that package
// doctor computes.
type Atom struct {
	Name  string
	Args  []string // of a fact: @failed(timeout,ibv_modify_qp)
	Index int      // of the observation's argument that is compared; -1: the first, or the whole line
	Op    string   // = one of the values, ~ a pattern, > >= < <= a number; "": it is there
	Value string

	pattern *regexp.Regexp
	number  float64
}

// Bounds of conditions.
const (
	maxCondition = 2000
	maxDepth     = 20
)

// ParseCondition reads a condition.
func ParseCondition(text string) (*Condition, error) {
	p, err := scan(text)
	if err != nil {
		return nil, err
	}
	c, err := p.alternatives(0)
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("%q is left over; expected and, or, or the end", p.words[0])
	}
	if err != nil {
		return nil, fmt.Errorf("condition %q: %w", text, err)
	}
	return c, nil
}

// ParseAtoms reads atoms that blanks part.
func ParseAtoms(text string) (list []*Atom, err error) {
	p, err := scan(text)
	if err != nil {
		return nil, err
	}
	for _, w := range p.words {
		a, err := parseAtom(w)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

type conditionParser struct{ words []string }

// conditionWord is a bracket or an atom. The brackets of a fact's arguments, and what stands between single quotes,
// stay.
var conditionWord = lazyre.New(`[()]|(?:@[\w-]+\([^()]*\)|'[^']*'|[^ ()'])+`)

func scan(text string) (p conditionParser, err error) {
	if len(text) > maxCondition {
		return p, fmt.Errorf("condition of %d bytes; expected at most %d", len(text), maxCondition)
	}
	if strings.Count(text, "'")%2 > 0 {
		return p, errors.New("a quote is not closed")
	}
	p.words = conditionWord.FindAllString(text, -1)
	return p, nil
}

func (p *conditionParser) takeWord(word string) bool {
	if len(p.words) > 0 && p.words[0] == word {
		p.words = p.words[1:]
		return true
	}
	return false
}

func (p *conditionParser) alternatives(depth int) (*Condition, error) {
	return p.joined("or", func() (*Condition, error) {
		return p.joined("and", func() (*Condition, error) { return p.single(depth) })
	})
}

func (p *conditionParser) joined(op string, part func() (*Condition, error)) (*Condition, error) {
	c := &Condition{Op: op}
	for {
		x, err := part()
		if err != nil {
			return nil, err
		}
		c.List = append(c.List, x)
		if !p.takeWord(op) {
			break
		}
	}
	if len(c.List) == 1 {
		return c.List[0], nil
	}
	return c, nil
}

func (p *conditionParser) single(depth int) (*Condition, error) {
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("brackets deeper than %d", maxDepth)
	case len(p.words) == 0:
		return nil, errors.New("it ends early; expected a kind of observation, $SETTING or @fact")
	case p.takeWord("not"):
		x, err := p.single(depth + 1)
		return &Condition{Op: "not", List: []*Condition{x}}, err
	case p.takeWord("("):
		x, err := p.alternatives(depth + 1)
		if err == nil && !p.takeWord(")") {
			err = errors.New("a bracket is not closed")
		}
		return x, err
	}
	a, err := parseAtom(p.words[0])
	p.words = p.words[1:]
	return &Condition{Atom: a}, err
}

var (
	atomForm  = lazyre.New(`^([@$]?[A-Za-z][\w-]*)(?:\(([^()]*)\))?(?:\.(\d))?(?:(>=|<=|[=~<>])(.+))?$`)
	unquoting = strings.NewReplacer("'", "")
)

func parseAtom(word string) (*Atom, error) {
	m := atomForm.FindStringSubmatch(word)
	if m == nil || slices.Contains([]string{"and", "or", "not"}, word) {
		return nil, fmt.Errorf("%q is no atom; expected such as shm-failure, symptom=hang, $NCCL_ALGO=tree, @multinode or "+
			"shm-size.0<256", word)
	}
	a := &Atom{Name: m[1], Index: -1, Op: m[4], Value: unquoting.Replace(m[5])}
	if m[2] != "" {
		a.Args = strings.Split(unquoting.Replace(m[2]), ",")
	}
	if m[3] != "" {
		a.Index = int(m[3][0] - '0')
	}
	var err error
	switch a.Op {
	case "~":
		a.pattern, err = regexp.Compile("(?i)" + a.Value)
	case "", "=":
	default:
		a.number, err = numberOf(a.Value)
	}
	return a, err
}

// numberOf reads a number or a size: 0.15, 64M.
func numberOf(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if size, e := unit.ParseBytes(text); err != nil && e == nil {
		return float64(size), nil
	}
	return v, err
}

// Matches compares a text with the atom's value or pattern; without any, a text that is not empty matches.
func (a *Atom) Matches(text string) bool {
	switch a.Op {
	case "=":
		return slices.ContainsFunc(a.Values(), func(v string) bool { return strings.EqualFold(v, text) })
	case "~":
		return a.pattern.MatchString(text)
	case "":
		return text != ""
	}
	v, err := numberOf(text)
	return err == nil && a.Reaches(v)
}

// Values are those that the atom's observation may have, none: any.
func (a *Atom) Values() []string {
	if a.Op != "=" {
		return nil
	}
	return strings.Split(a.Value, ",")
}

// Reaches compares a number with the atom's; without one, more than nothing is asked for.
func (a *Atom) Reaches(v float64) bool {
	switch a.Op {
	case ">=":
		return v >= a.number
	case "<=":
		return v <= a.number
	case "<":
		return v < a.number
	case "=":
		return strconv.FormatFloat(v, 'g', -1, 64) == a.Value
	}
	return v > a.number
}

// Holds evaluates a condition by what is said of its atoms.
func (c *Condition) Holds(atom func(*Atom) bool) bool {
	switch c.Op {
	case "and":
		return !slices.ContainsFunc(c.List, func(x *Condition) bool { return !x.Holds(atom) })
	case "or":
		return slices.ContainsFunc(c.List, func(x *Condition) bool { return x.Holds(atom) })
	case "not":
		return !c.List[0].Holds(atom)
	}
	return atom(c.Atom)
}

// Atoms are all of a condition.
func (c *Condition) Atoms() (list []*Atom) {
	if c.Atom != nil {
		return []*Atom{c.Atom}
	}
	for _, x := range c.List {
		list = append(list, x.Atoms()...)
	}
	return list
}
