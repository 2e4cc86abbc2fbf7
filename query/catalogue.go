package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/doctor/cause"
	"busbar.dev/hardware"
	"busbar.dev/schedule"
	"busbar.dev/workload"
)

// List asks for what is known by name: of all, or of those that have all the words.
type List struct {
	// What is presets, models, hardware, frameworks, causes or algorithms.
	What  string   `kong:"-"`
	Atoms bool     `kong:"-" page:"-"` // of causes: what conditions may ask for
	Words []string `arg:"" optional:"" name:"words" names:"model" help:"Only what has all these words; of hardware also a table: links, gpu, nic, switch; a whole name or a config.json of a model lists its tensors."`
}

// ListDoc is the answer to List: what was asked for. One model's fields are the document's own.
type ListDoc struct {
	Presets    []hardware.PresetInfo   `json:"presets,omitempty"`
	GPUs       []hardware.GPUModel     `json:"gpus,omitempty"`
	Links      []hardware.Interconnect `json:"links,omitempty"`
	NICs       []hardware.NICModel     `json:"nics,omitempty"`
	Switches   []hardware.SwitchModel  `json:"switches,omitempty"`
	Models     []workload.ModelSummary `json:"models,omitempty"`
	Algorithms []schedule.Builder      `json:"algorithms,omitempty"` // of schedules
	Frameworks []listedName            `json:"frameworks,omitempty"`
	Causes     []listedName            `json:"causes,omitempty"` // that the doctor knows
	*workload.ModelSummary
}

// listedName is something with a name that says in a sentence what it is.
type listedName struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Source string `json:"source,omitempty"`
}

// Run lists.
func (q List) Run(_ context.Context, env Env) (doc *ListDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	d := &ListDoc{}
	switch q.What {
	case "presets":
		d.Presets = having(q.Words, hardware.Presets(),
			func(p hardware.PresetInfo) string { return p.Name + " " + p.Summary })
	case "hardware":
		d.addHardware(q.Words)
	case "models":
		return q.models(env)
	case "algorithms":
		d.Algorithms = having(q.Words, algorithms(), func(b schedule.Builder) string { return b.Name + " " + b.Does })
	case "frameworks":
		for _, f := range workload.Frameworks() {
			text := fmt.Sprintf("since %s; ZeRO %v; precisions %s", f.Since, f.ZeRO, strings.Join(f.Precisions, ", "))
			d.Frameworks = append(d.Frameworks, listedName{f.ID, f.Title, text, f.Source})
		}
		d.Frameworks = having(q.Words, d.Frameworks, listedName.all)
	case "causes":
		if err := d.addCauses(q.Atoms); err != nil {
			return nil, err
		}
		d.Causes = having(q.Words, d.Causes, listedName.all)
	default:
		return nil, fmt.Errorf("list %.40q: expected presets, models, hardware, frameworks, causes or algorithms", q.What)
	}
	return d, q.found(d.rows())
}

// addCauses lists causes, or what their conditions may ask for.
func (d *ListDoc) addCauses(atoms bool) error {
	if atoms {
		for _, a := range doctor.Atoms() {
			d.Causes = append(d.Causes, listedName{Name: a.Name, Title: a.Says})
		}
		return nil
	}
	model, err := cause.New()
	if err != nil {
		return err
	}
	for _, c := range model.Causes {
		d.Causes = append(d.Causes, listedName{c.ID, c.Title, c.Why, c.See})
	}
	return nil
}

func (n listedName) all() string { return n.Name + " " + n.Title + " " + n.Text }

// rows is how many things are listed.
func (d *ListDoc) rows() int {
	return len(d.Presets) + len(d.GPUs) + len(d.Links) + len(d.NICs) + len(d.Switches) + len(d.Models) +
		len(d.Algorithms) +
		len(d.Frameworks) + len(d.Causes)
}

// found refuses words that nothing has.
func (q *List) found(rows int) error {
	if rows > 0 {
		return nil
	}
	return fmt.Errorf("%.60q: none of the %s has these words; busbar list %[2]s lists all", strings.Join(q.Words, " "),
		q.What)
}

// having are the rows whose text has all words, in any case.
func having[R any](words []string, rows []R, text func(R) string) []R {
	return slices.DeleteFunc(slices.Clone(rows), func(r R) bool {
		has := strings.ToLower(text(r))
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(has, strings.ToLower(w)) })
	})
}

// addHardware lists the catalogue of links, accelerators, network cards and switches, or one of these tables.
func (d *ListDoc) addHardware(words []string) {
	table := "all"
	if len(words) > 0 && slices.Contains([]string{"links", "gpu", "nic", "switch"}, words[0]) {
		table, words = words[0], words[1:]
	}
	want := func(name string) bool { return table == "all" || table == name }
	if want("links") {
		d.Links = having(words, hardware.Interconnects(), func(x hardware.Interconnect) string { return x.Name })
	}
	if want("gpu") {
		d.GPUs = having(words, hardware.GPUs(), func(x hardware.GPUModel) string { return x.Name + " " + x.Title })
	}
	if want("nic") {
		d.NICs = having(words, hardware.NICs(), func(x hardware.NICModel) string { return x.Name })
	}
	if want("switch") {
		d.Switches = having(words, hardware.Switches(), func(x hardware.SwitchModel) string { return x.Name })
	}
}

// models lists the models, or the tensors of one that is named or in a file.
func (q *List) models(env Env) (*ListDoc, error) {
	d := &ListDoc{}
	for _, m := range workload.Models() {
		d.Models = append(d.Models, m.Summary())
	}
	d.Models = having(q.Words, d.Models, func(m workload.ModelSummary) string { return m.Name + " " + m.Title })
	named := len(q.Words) == 1 && (strings.ContainsAny(q.Words[0], "./=") || slices.Contains(workload.Names(), q.Words[0]))
	if !named && len(d.Models) > 0 || len(q.Words) != 1 {
		return d, q.found(len(d.Models))
	}
	m, err := LoadModel(env, q.Words[0]) // which says what is near, where nothing has the word
	if err != nil {
		return nil, err
	}
	one := m.Summary()
	one.Tensors = m.Tensors()
	return &ListDoc{ModelSummary: &one}, nil
}

// algorithms are those that schedules can be built by.
func algorithms() []schedule.Builder {
	var list []schedule.Builder
	for _, b := range schedule.Builders() {
		// Those that compute in a switch need one.
		s, err := b.Build(b.Kinds[0], schedule.Params{Ranks: 4, Groups: [][]int{{0, 1}, {2, 3}}})
		if err == nil && len(s.Switches) > 0 {
			if b.Needs != "" {
				b.Needs += ", "
			}
			b.Needs += "a switch that computes (" + s.Switches[0].Kind.String() + ")"
		}
		list = append(list, b)
	}
	return list
}
