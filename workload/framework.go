package workload

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

//go:embed data/frameworks.csv
var frameworksCSV string

// Framework is a training framework at a release: what it runs, what it overlaps, and what it
// does when nobody says. Values come from ParseFramework and Frameworks, and are not changed.
type Framework struct {
	ID    string   `csv:"id"` // NAME@RELEASE of the row
	Title string   `csv:"title"`
	Also  []string `csv:"also,optional"`  // other names, of all releases
	Taken []string `csv:"taken,optional"` // other programs, of which no more is known than that they are like it
	On    []string `csv:"on,optional"`    // frameworks that it is built on, of all releases
	Since string   `csv:"since"`          // year and month

	ZeRO         []int    `csv:"zero"`                   // what plans are tried with
	ZeROAsked    []int    `csv:"zero_asked,optional"`    // run by another mode, where it is asked for
	ZeROPipeline []int    `csv:"zero_pipeline,optional"` // what goes with a pipeline
	Hybrid       bool     `csv:"hybrid,optional"`        // replicas may shard in groups
	Tensor       bool     `csv:"tensor,optional"`
	Sequence     bool     `csv:"sequence,optional"`
	Schedules    []string `csv:"schedules,optional"`
	Uneven       bool     `csv:"uneven,optional"` // stages may differ in layers
	Stages       string   `csv:"stages,optional"` // how layers are divided among them: slots, cost; "" is evenly
	Context      []string `csv:"context,optional"`
	Experts      string   `csv:"experts,optional"` // dp, folded; none
	Precisions   []string `csv:"precisions"`
	Recompute    []string `csv:"recompute"`
	Selective    string   `csv:"selective,optional"` // which recomputation it calls selective; "": that of attention's core
	Offload      []string `csv:"offload,optional"`
	Compress     []string `csv:"compress,optional"`
	Adapters     []int    `csv:"adapters,optional"` // bits of frozen weights beside which it trains adapters
	Orders       []string `csv:"orders"`
	Kernels      string   `csv:"kernels"`
	Compile      bool     `csv:"compile,optional"` // torch.compile or like it, by a switch
	Attention    string   `csv:"attention"`        // unfused, early, fused
	Weights      string   `csv:"weights"`          // copy, wide, amp, autocast, sums
	Sums         string   `csv:"sums"`             // fp32, bf16, fp16

	Overlaps    []string   `csv:"overlaps,optional"` // unasked
	Switches    []string   `csv:"switches,optional"` // where settings say so
	Loss        string     `csv:"loss,optional"`     // in-place, chunked; "" is as the kernels do
	Loop        int        `csv:"loop,optional"`     // compute capability ×10 below which experts are computed one after the other, whatever the kernels
	Bucket      unit.Bytes `csv:"bucket,optional"`   // 0: DefaultBucket
	Planned     []string   `csv:"planned,optional"`  // degrees that its configuration sets: tp, sp, pp, cp, ep
	Launch      []string   `csv:"launch"`
	Checkpoints []string   `csv:"checkpoints"`
	Source      string     `csv:"source"`
	Note        string     `csv:"note,optional"`

	// Name and Release are the two halves of what was asked for: a release between two rows is
	// the earlier row's, and keeps its own number.
	Name, Release string
	// At is the month of what was asked for, which its recipes are of.
	At string
	// Newer is the release that was asked for where it is newer than all that are known; the newest is taken for it.
	Newer string
	// Other says that another program was asked for, which is taken as this one.
	Other bool
}

// What may overlap with computing.
const (
	OverlapGrads    = "grads"
	OverlapParams   = "params" // the gather after the update
	OverlapTensor   = "tensor"
	OverlapPipeline = "pipeline"
	OverlapContext  = "context"
)

var frameworks = sync.OnceValue(func() []Framework {
	list := csvtable.Must[Framework]("workload/data/frameworks.csv", frameworksCSV)
	for i := range list {
		list[i].Name, list[i].Release, _ = strings.Cut(list[i].ID, "@")
	}
	return list
})

// Frameworks are all that are known, each release of its own.
func Frameworks() []Framework { return frameworks() }

// FrameworkNames are the names that ParseFramework knows, without other spellings.
func FrameworkNames() []string {
	var list []string
	for i := range frameworks() {
		if name := frameworks()[i].Name; !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// String is NAME@RELEASE as it was asked for.
func (f *Framework) String() string { return f.Name + "@" + f.Release }

// Overlapped reports whether the framework hides something behind computing: unasked, or by a
// switch that busbar's files set.
func (f *Framework) Overlapped(what string) bool {
	return slices.Contains(f.Overlaps, what) || slices.Contains(f.Switches, what)
}

// Has reports whether the release is another one or newer. Numbers below 1 are another count than those before them.
func (f *Framework) Has(release string) bool {
	if now := strings.HasPrefix(f.Release, "0."); now != strings.HasPrefix(release, "0.") {
		return now
	}
	return compareReleases(f.Release, release) >= 0
}

// ParseFramework is the framework of NAME[@RELEASE]; without a release the newest one. The name is one of the table or
// a text that has one in it, as people write them: "NeMo / Megatron-Core", "PyTorch FSDP2 (torch.compile)". A release
// is a number (0.12, v0.12.1, core_v0.12.0), or a year or month (2025, 2025-06) for the newest one of that time. One
// that is newer than the table has is taken for the newest.
func ParseFramework(text string) (*Framework, error) {
	name, release, cut := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "@")
	rows := frameworkRows(frameworkIn(name))
	if len(rows) == 0 {
		return nil, fmt.Errorf("framework %.60q is unknown; there are %s, each with @RELEASE where it is not the newest; "+
			"they train: serving is "+
			"not priced, but its collectives are (busbar predict --op all_reduce)",
			text, strings.Join(FrameworkNames(), ", "))
	}
	f := *rows[len(rows)-1]
	f.At = f.Since
	if cut && release != "main" && release != "latest" {
		var known []string
		for _, r := range rows {
			known = append(known, r.Release)
		}
		number := trimRelease(release)
		if strings.Contains(release, "@") || exponent.MatchString(release) || !isRelease(number) && !isMonth(number) {
			return nil, fmt.Errorf("framework %.60q: release %.30q; known are %s, or a year or a month (2025-06)", text, release,
				strings.Join(known, ", "))
		}
		at, newer := releaseRow(rows, number)
		if at < 0 {
			return nil, fmt.Errorf("framework %.60q is older than what is known of %s; known are %s", text, rows[0].Name,
				strings.Join(known, ", "))
		}
		f = *rows[at]
		f.At = monthOf(number, f.Since)
		switch {
		case newer:
			f.Newer = number
		case strings.Contains(number, "."):
			f.Release = number
		}
	}
	f.kernelsIn(name)
	f.Other = isOther(name, f.Name)
	return &f, nil
}

// FrameworkAt is the framework of a name and a time (2025, 2025-06): the newest release of then, the oldest where that
// is before all. A release that the name says itself wins.
func FrameworkAt(name, time string) (*Framework, error) {
	if strings.Contains(name, "@") { // which says its release
		if f, err := ParseFramework(name); err == nil {
			return f, nil
		}
		name = strings.ReplaceAll(name, "@", " ")
	}
	if f, err := ParseFramework(name + "@" + time); err == nil {
		return f, nil
	}
	rows := frameworkRows(frameworkIn(name))
	if len(rows) == 0 {
		return ParseFramework(name)
	}
	f := *rows[0]
	f.At = f.Since
	f.kernelsIn(strings.ToLower(name))
	return &f, nil
}

// kernelsIn takes kernels that a name speaks of: "torch.compile", "eager".
func (f *Framework) kernelsIn(name string) {
	switch {
	case f.Kernels == string(Eager) && f.Compile && strings.Contains(name, "compile"):
		f.Kernels = string(Compiled)
	case f.Kernels == string(Compiled) && strings.Contains(name, "eager"):
		f.Kernels = string(Eager)
	}
}

// releaseRow is the row that a release belongs to: the newest that is no newer, -1 where there is none, and the newest
// of all where the release is newer than each of them. A number alone is the newest that begins with it. Numbers below
// 1 are another count than those before them (Megatron-LM 23.04 was followed by core 0.4).
func releaseRow(rows []*Framework, number string) (at int, newer bool) {
	at = -1
	if isYear(number) || isMonth(number) {
		for i, r := range rows {
			if r.Since[:len(number)] <= number {
				at = i
			}
		}
		return at, false
	}
	newer = true
	for i, r := range rows {
		if !strings.Contains(number, ".") && strings.HasPrefix(r.Release, number+".") || r.Release == number {
			at, newer = i, false
		}
	}
	if at >= 0 {
		return at, false
	}
	core := func(release string) bool { return strings.HasPrefix(release, "0.") }
	for i, r := range rows {
		older := compareReleases(r.Release, number) <= 0
		if older && core(r.Release) == core(number) {
			at = i
		}
		newer = newer && older
	}
	last := len(rows) - 1
	if core(number) { // those of the other count are before it
		newer = at == last && compareReleases(strings.Join(strings.Split(number, ".")[:2], "."), rows[last].Release) > 0
	}
	major := func(release string) string { return strings.SplitN(release, ".", 2)[0] }
	if newer && (at == last || at < 0 || major(rows[at].Release) != major(number)) {
		return last, !strings.HasPrefix(number, rows[last].Release+".")
	}
	return at, false
}

// exponent is a number that is no release: 1e9.
var exponent = lazyre.New(`^[0-9.]+e[0-9]`)

// trimRelease is the number of a tag: core_v0.12.0rc3 is 0.12.0.
func trimRelease(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "core_"), "r"), "v")
	// a month, with a day or without; no number with something behind it
	if len(text) > 5 && isYear(text[:4]) && text[4] == '-' {
		return text[:min(len(text), len("2025-06"))]
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i > 0 &&
		!isMonth(text) {
		text = text[:i]
	}
	return strings.Trim(text, ".")
}

// monthOf is the month of a release: itself (2025-06), or that which NVIDIA's count by year and month (25.06), else
// since.
func monthOf(release, since string) string {
	if m := strings.Split(release, "."); len(m) > 1 && isMonth("20"+m[0]+"-"+m[1]) {
		return "20" + m[0] + "-" + m[1]
	}
	if isMonth(release) {
		return release
	}
	return since
}

// isMonth reports 2025-06.
func isMonth(text string) bool {
	year, month, ok := strings.Cut(text, "-")
	return ok && isYear(year) && len(month) == 2 && month >= "01" && month <= "12"
}

func isYear(text string) bool {
	return len(text) == 4 && !strings.Contains(text, ".") &&
		(strings.HasPrefix(text, "20") || strings.HasPrefix(text, "19"))
}

// isRelease reports whether a text is numbers with dots between them.
func isRelease(text string) bool {
	for _, part := range strings.Split(text, ".") {
		if n, err := strconv.Atoi(part); err != nil || n < 0 || len(part) > 6 {
			return false
		}
	}
	return true
}

// compareReleases compares number by number; what one lacks is zero.
func compareReleases(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m, _ = strconv.Atoi(x[i])
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m - n
		}
	}
	return 0
}

// spelling is one way to write a framework's name, as words, or that of another program which is taken as it.
type spelling struct {
	words []string
	name  string
	other bool
}

// spellings are all of them, and what every framework is built on.
var spellings = sync.OnceValues(func() (list []spelling, on map[string][]string) {
	on = map[string][]string{}
	for i := range frameworks() {
		f := &frameworks()[i]
		for _, text := range append([]string{f.Name}, f.Also...) {
			list = append(list, spelling{frameworkWords(text), f.Name, false})
		}
		for _, text := range f.Taken {
			list = append(list, spelling{frameworkWords(text), f.Name, true})
		}
		on[f.Name] = append(on[f.Name], f.On...)
	}
	return list, on
})

// frameworkWords cuts a name at what is neither letter nor digit.
func frameworkWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// mostWords bounds the name of a framework.
const mostWords = 40

// frameworkIn is the framework that a text names; "" where it names none. Of several that which is built on the others
// is meant: NeMo of "NeMo / Megatron-Core", Megatron-DeepSpeed of "DeepSpeed with Megatron-LM"; else the one that is
// named first.
func frameworkIn(text string) string {
	words := frameworkWords(text)
	if len(words) > mostWords {
		return ""
	}
	found := namedIn(words)
	if len(found) < 2 {
		return strings.Join(found, "")
	}
	_, on := spellings()
	above := slices.DeleteFunc(slices.Clone(found), func(name string) bool {
		return slices.ContainsFunc(found, func(other string) bool { return slices.Contains(on[other], name) })
	})
	if len(above) == 1 {
		return above[0]
	}
	for i := range frameworks() { // one that is built on all of them
		name := frameworks()[i].Name
		if !slices.ContainsFunc(above, func(x string) bool { return !slices.Contains(on[name], x) }) {
			return name
		}
	}
	return append(above, found...)[0]
}

// isOther reports whether a text means a framework by the name of another program alone.
func isOther(text, name string) bool {
	words, other := frameworkWords(text), false
	list, _ := spellings()
	for i := range list {
		x := &list[i]
		has := slices.ContainsFunc(words, func(w string) bool { return w == x.words[0] })
		if x.name == name && has && len(x.words) <= len(words) {
			if !x.other {
				return false
			}
			other = true
		}
	}
	return other
}

// namedIn are the frameworks whose names stand among words, in their order; a name inside a longer one does not count.
func namedIn(words []string) []string {
	list, _ := spellings()
	var found []string
	for at := 0; at < len(words); {
		longest, name := 1, ""
		for i := range list {
			if n := len(list[i].words); at+n <= len(words) && (n > longest || name == "") &&
				slices.Equal(list[i].words, words[at:at+n]) {
				longest, name = n, list[i].name
			}
		}
		if name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
		at += longest
	}
	return found
}

// frameworkRows are the releases of a framework, the oldest first.
func frameworkRows(name string) []*Framework {
	var rows []*Framework
	for i := range frameworks() {
		if frameworks()[i].Name == name {
			rows = append(rows, &frameworks()[i])
		}
	}
	return rows
}
