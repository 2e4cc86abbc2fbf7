package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"busbar.dev/ask"
	"busbar.dev/query"
)

var update = flag.Bool("update", false, "rewrite the addresses in docs/api.md")

const (
	apiPage = "../docs/api.md"
	// made begins what is made from the registry; what stands above it is written by hand.
	made = "## Addresses\n"
)

// TestAPIPage holds the addresses in docs/api.md to the registry: routes with the role that they need, and of every
// question its parameters with what they take, their defaults, the forms and the document of its answer.
func TestAPIPage(t *testing.T) {
	text, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	head, old, found := strings.Cut(string(text), made)
	want := addresses(t)
	if *update {
		if err := os.WriteFile(apiPage, []byte(head+made+want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !found || old != want {
		t.Error("docs/api.md is not what the registry says; go test ./web -run APIPage -update rewrites it")
	}
}

// addresses is the part of the page.
func addresses(t *testing.T) string {
	s := newSite(t, nil)
	_, text := s.ask(t, "GET", "/api/", s.read, nil)
	var d Index
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\nThis part is made from the registry of questions. A role is the least that a token needs.\n\n```\n")
	for _, r := range d.Routes {
		if slices.ContainsFunc(d.Commands, func(c IndexCommand) bool { return c.Path == r.Path }) {
			continue // below
		}
		fmt.Fprintf(&b, "%-6s %-16s %s\n", r.Method, r.Path, r.Role)
	}
	b.WriteString("```\n\nA line is a parameter by all its names, what it takes, its default and its values; `+` may be " +
		"repeated, " +
		"`@` may name an upload.\n\n### A job\n\n```\n")
	job := names(query.Params(query.Job{}))
	list := questions()
	of := func(path string) *ask.Question {
		i := slices.IndexFunc(list, func(q *ask.Question) bool { return "/api/"+q.Route == path })
		return list[i]
	}
	step := d.Commands[slices.IndexFunc(d.Commands, func(c IndexCommand) bool { return c.Path == "/api/step" })]
	parameters(&b, step, func(p IndexParam) bool { return job[p.Name] != "" })
	b.WriteString("```\n")
	for _, c := range d.Commands {
		q := ask.Audit
		if !strings.Contains(c.Path, "?") {
			q = of(c.Path)
		}
		own := names(q.Params())
		isJob := true
		for name, help := range job {
			isJob = isJob && own[name] == help
		}
		fmt.Fprintf(&b, "\n### GET %s\n\n`%s`: %s%s%s\n", c.Path, c.Command, answerOf(q),
			otherForms(c.Forms), map[bool]string{true: "; a job and"}[isJob])
		rest := func(p IndexParam) bool { return !isJob || job[p.Name] == "" }
		if slices.ContainsFunc(c.Parameters, rest) {
			b.WriteString("\n```\n")
			parameters(&b, c, rest)
			b.WriteString("```\n")
		}
	}
	return b.String()
}

// names are those of parameters on the page, with their help.
func names(list []query.Param) map[string]string {
	all := map[string]string{}
	for _, p := range list {
		if p.Page != "" {
			all[p.Page] = p.Help
		}
	}
	return all
}

func otherForms(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ", or o=" + strings.Join(list, ", ")
}

// answerOf links the document of a question's answer.
func answerOf(q *ask.Question) string {
	run, _ := reflect.TypeOf(q.New()).Elem().MethodByName("Run")
	name := run.Type.Out(0).Elem().Name()
	return fmt.Sprintf("[%s](format/documents.md#%s)", name, strings.ToLower(name))
}

// preset is what a help text says of the default.
var preset = regexp.MustCompile(`\((default[^()]*)\)`)

func parameters(w *strings.Builder, c IndexCommand, want func(IndexParam) bool) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range c.Parameters {
		if !want(p) {
			continue
		}
		mark := map[bool]string{true: "+"}[p.Repeated] + map[bool]string{true: "@"}[p.Upload]
		value := p.Value + mark
		if len(p.Values) > 0 {
			value = strings.Join(p.Values, "|")
		}
		def := ""
		if m := preset.FindStringSubmatch(p.Help); m != nil {
			def = m[1]
		} else if p.Default != "" {
			def = "default " + p.Default
		}
		line := strings.Join(append([]string{p.Name}, p.Also...), ", ") + "\t" + value + "\t" + def
		fmt.Fprintln(tab, strings.TrimRight(line, "\t"))
	}
	tab.Flush()
}
