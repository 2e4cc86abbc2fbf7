package cause

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/yamldoc"
)

// Cause is why a job is slow, broken or hung.
type Cause struct {
	ID    string // the file's name
	Title string
	Why   string // what happens
	Fix   string
	Test  string // the command that confirms it
	Ask   string // what it shows then, as a question
	See   string // where to read on
	Cost  string // what it costs a job, where that can be said of all machines
	Area  string // pcie, network, program, …: what questions tell apart

	Symptoms []string // hang, slow, …, see words.yaml
	Where    []string // circumstances in which it happens; none: any
	Rules    []string // causes whose evidence shows this one too; the ID is one always
	Answers  []string // keys of collected threads with this cause
	Explains []string // causes that are its consequences where both are named

	Found       []Found  // how lines, settings, figures and topology show it
	Follows     []string // findings that follow from it
	Consequence bool     // it says what happened and not why; causes come before it

	signs [kinds][]sign
}

// Kinds of signs.
const (
	strong  = iota // almost only with this cause
	weak           // fits, and others have it too
	helps          // remedies: a change that helps if this is the cause
	inOrder        // says that it is not this
	kinds
)

var kindNames = [kinds]string{"strong", "weak", "helps", "ok"}

//go:embed causes/*.yaml questions.yaml words.yaml weights.csv signs.csv threads.csv records.csv
var data embed.FS

// maxCauses and maxFile bound what a user's folder may hold.
const (
	maxCauses = 5000
	maxFile   = 64 << 10
)

// builtin are the causes of the program, read once.
var builtin = sync.OnceValues(func() ([]*Cause, error) { return Load(data, "causes") })

// Load reads the causes in a folder.
func Load(files fs.FS, dir string) ([]*Cause, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var list []*Cause
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		if len(list) >= maxCauses {
			return nil, fmt.Errorf("%s: more than %d causes", dir, maxCauses)
		}
		// A folder that somebody hands over may hold pipes, devices and endless files.
		if info, err := fs.Stat(files, path.Join(dir, name)); err != nil || !info.Mode().IsRegular() ||
			info.Size() > maxFile {
			return nil, fmt.Errorf("%s: expected a file of at most %d bytes", path.Join(dir, name), maxFile)
		}
		text, err := fs.ReadFile(files, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		c, err := Parse(strings.TrimSuffix(name, ".yaml"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Join(dir, name), err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no cause in it; expected files NAME.yaml", dir)
	}
	return list, nil
}

// Parse reads one cause.
func Parse(id, text string) (*Cause, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%d bytes; expected at most %d", len(text), maxFile)
	}
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 || docs[0].Kind != yamldoc.Map {
		return nil, errors.New("expected one map with title, cause, fix, test and strong")
	}
	c := &Cause{ID: id}
	for i := range docs[0].Items {
		if err := c.field(&docs[0].Items[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", docs[0].Items[i].LineNum(), err)
		}
	}
	switch {
	case c.Title == "" || c.Why == "" || c.Fix == "" || c.Test == "" && len(c.signs[strong]) > 0:
		return nil, errors.New("title, cause, fix and test must be there")
	case len(c.signs[strong]) == 0 && len(c.Found) == 0:
		return nil, errors.New("strong or found: at least one; expected words such as ulimit+-l|memlock")
	}
	c.texts()
	return c, nil
}

func (c *Cause) field(v *yamldoc.Value) error {
	if k := slices.Index(kindNames[:], v.Key); k >= 0 {
		for _, item := range v.List() {
			s, err := parseSign(item.Str())
			if err != nil {
				return err
			}
			c.signs[k] = append(c.signs[k], s)
		}
		return nil
	}
	switch v.Key {
	case "found":
		for _, item := range v.List() {
			f, err := parseFound(&item)
			if err != nil {
				return err
			}
			c.Found = append(c.Found, f)
		}
		return nil
	case "consequence":
		c.Consequence = v.Str() == "true"
		return nil
	}
	texts := map[string]*string{
		"title": &c.Title, "cause": &c.Why, "fix": &c.Fix, "test": &c.Test, "ask": &c.Ask, "see": &c.See, "cost": &c.Cost,
		"area": &c.Area,
	}
	lists := map[string]*[]string{
		"symptoms": &c.Symptoms, "where": &c.Where, "rules": &c.Rules, "answers": &c.Answers, "explains": &c.Explains,
		"follows": &c.Follows,
	}
	if p := texts[v.Key]; p != nil {
		*p = v.Str()
		return nil
	}
	p := lists[v.Key]
	if p == nil {
		return fmt.Errorf("%q is no field; expected title, cause, fix, test, ask, see, cost, area, symptoms, where, rules, "+
			"answers, explains, follows, found, consequence, strong, weak, helps or ok", v.Key)
	}
	for _, item := range v.List() {
		*p = append(*p, item.Str())
	}
	return nil
}

// Finds reports that a detector of package doctor finds this cause.
func (c *Cause) Finds(rule string) bool { return c.ID == rule || slices.Contains(c.Rules, rule) }

// Remedies reports that a change is among the remedies of this cause.
func (c *Cause) Remedies(change string) bool { return anySign(c.signs[helps], normalise(change)) }
