package query

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/lazyre"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/schedule"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Param is one field of a question as its tags describe it.
type Param struct {
	Name  string // the flag without its dashes: global-batch
	Short string // of one letter, or empty
	Help  string
	// Default is what the zero value means, as text; empty where the question says it in its help.
	Default string
	// Enum are the values it takes; none is any.
	Enum []string
	// Names is what else than a plain value it may name: cluster, model, file or files, whose values may be files. Empty
	// is nothing.
	Names string
	// Also are names that it has in other programs.
	Also []string
	// Page is what the page of busbar serve calls it; empty where it does not offer it.
	Page string
	// Repeated says that it may be given several times; Listed that one value may hold several, with commas.
	Repeated, Listed bool
	// Argument says that it stands without a flag.
	Argument bool

	// Placeholder stands for its value in help and errors: SIZE, NODESxGPUS.
	Placeholder string

	least, most string
	index       []int
}

// Params are the parameters of a question, in order.
func Params(question any) []Param {
	var list []Param
	walk(reflect.Indirect(reflect.ValueOf(question)).Type(), nil, &list)
	return list
}

func walk(t reflect.Type, at []int, list *[]Param) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			walk(f.Type, index, list)
			continue
		}
		help, ok := f.Tag.Lookup("help")
		if !f.IsExported() || !ok {
			continue
		}
		_, argument := f.Tag.Lookup("arg")
		p := Param{
			Name: f.Tag.Get("name"), Short: f.Tag.Get("short"), Help: help, Default: f.Tag.Get("default"),
			Names: f.Tag.Get("names"), Also: strings.Split(f.Tag.Get("aliases"), ","),
			Argument: argument, least: f.Tag.Get("least"), most: f.Tag.Get("most"), Placeholder: f.Tag.Get("placeholder"),
			index: index,
		}
		if p.Name == "" {
			p.Name = strings.ToLower(f.Name)
		}
		if p.Page = cmp.Or(f.Tag.Get("page"), p.Short, p.Name); p.Page == "-" {
			p.Page = ""
		}
		if e, ok := f.Tag.Lookup("enum"); ok {
			p.Enum = strings.Split(e, ",")
		}
		if f.Type.Kind() == reflect.Slice {
			p.Repeated = f.Tag.Get("sep") == "none" || argument
			p.Listed = !p.Repeated
		}
		*list = append(*list, p)
	}
}

// prepare gives zero fields their defaults and checks all fields against their tags, so that a question that was filled
// in by a program is held to what the command line holds its flags to.
func prepare(question any) error {
	v := reflect.ValueOf(question).Elem()
	for _, p := range Params(question) {
		f := v.FieldByIndex(p.index)
		if f.IsZero() && p.Default != "" {
			if err := p.fill(f, p.Default); err != nil {
				return fmt.Errorf("%T: the default of %s: %w", question, p.Name, err)
			}
		}
		if err := p.check(f); err != nil {
			return err
		}
	}
	return nil
}

// check holds a value to its tags. The zero value is what nobody gave.
func (p *Param) check(f reflect.Value) error {
	if f.IsZero() {
		return nil
	}
	if len(p.Enum) > 0 && f.Kind() == reflect.String {
		for _, e := range p.Enum {
			if strings.EqualFold(e, f.String()) {
				f.SetString(e) // any case is taken
				return nil
			}
		}
		return fmt.Errorf("--%s %.40q: expected one of %s", p.Name, f.String(),
			strings.TrimPrefix(strings.Join(p.Enum, ", "), ", "))
	}
	return Bounds(p.Name, f, p.least, p.most)
}

// Bounds holds a flag's value to its tags least and most, which are written as the flag itself is. An empty tag is no
// bound.
func Bounds(name string, f reflect.Value, least, most string) error {
	got, ok := number(f)
	if !ok {
		return nil
	}
	low, okLow := bound(least)
	high, okHigh := bound(most)
	below, above := okLow && !(got >= low), okHigh && !(got <= high) // what is no number is neither
	value := reflect.Indirect(f)
	switch {
	case (below || above) && okLow && okHigh:
		return fmt.Errorf("--%s %v: expected from %s to %s", name, value.Interface(), least, most)
	case below:
		return fmt.Errorf("--%s %v: expected %s or more", name, value.Interface(), least)
	case above:
		return fmt.Errorf("--%s %v: expected %s at most", name, value.Interface(), most)
	}
	return nil
}

// number is a value as a number; times are nanoseconds.
func number(v reflect.Value) (float64, bool) {
	v = reflect.Indirect(v)
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// bound reads a tag: a number or a time.
func bound(text string) (float64, bool) {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x, true
	}
	d, err := time.ParseDuration(text)
	return float64(d), err == nil && text != ""
}

// Set gives a question's parameter a value that is a text, as the page and other programs have it. A repeated parameter
// gets one more.
func (p *Param) Set(question any, text string) error {
	f := reflect.ValueOf(question).Elem().FieldByIndex(p.index)
	if err := p.fill(f, text); err != nil {
		return fmt.Errorf("%s=%.40q: %w", p.Page, text, err)
	}
	if f.IsZero() && p.least != "" {
		return fmt.Errorf("%s=%.40q: expected %s or more", p.Page, text, p.least)
	}
	env := Env{question: question}
	return env.spelled(p.check(f))
}

// fill gives a field a value that is a text, and a list one more or as many as the text has.
func (p *Param) fill(f reflect.Value, text string) error {
	if f.Kind() != reflect.Slice {
		return setText(f, text)
	}
	parts := []string{text}
	if p.Listed {
		parts = strings.Split(text, ",")
	}
	for _, part := range parts {
		x := reflect.New(f.Type().Elem()).Elem()
		if err := setText(x, part); err != nil {
			return err
		}
		f.Set(reflect.Append(f, x))
	}
	return nil
}

// IsNumber and IsFlag tell what kind of value a question's parameter has.
func (p *Param) IsNumber(question any) bool {
	t := p.typeIn(question)
	return t.Kind() == reflect.Int || t.Kind() == reflect.Int64 && t != reflect.TypeFor[time.Duration]() ||
		t.Kind() == reflect.Float64
}

// IsFlag reports a parameter that is there or not.
func (p *Param) IsFlag(question any) bool { return p.typeIn(question).Kind() == reflect.Bool }

func (p *Param) typeIn(question any) reflect.Type {
	t := reflect.Indirect(reflect.ValueOf(question)).Type().FieldByIndex(p.index).Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// setText gives a field a value that is a text. A field that is a pointer is one whose zero is a value like others, and
// not what nobody gave.
func setText(f reflect.Value, text string) error {
	if f.Kind() == reflect.Pointer {
		x := reflect.New(f.Type().Elem())
		if err := setText(x.Elem(), text); err != nil {
			return err
		}
		f.Set(x)
		return nil
	}
	if u, ok := f.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case f.Kind() == reflect.String:
		f.SetString(text)
	case f.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("expected a time such as 30s")
		}
		f.SetInt(int64(d))
	case f.CanInt():
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("expected a whole number of at most 18 digits")
		}
		f.SetInt(n)
	case f.CanFloat():
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("expected a number")
		}
		f.SetFloat(x)
	case f.Kind() == reflect.Bool:
		f.SetBool(text == "1" || text == "true")
	default:
		return fmt.Errorf("a %s cannot be given as text", f.Type())
	}
	return nil
}

// plainWord is a word that shells leave as it is.
var plainWord = lazyre.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellLine is a command as a person can paste it into a shell.
func ShellLine(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = shellWord(w)
	}
	return strings.Join(list, " ")
}

// shellWord is a word as shells read it back; what a terminal would obey is written as numbers.
func shellWord(w string) string {
	switch {
	case plainWord.MatchString(w):
		return w
	case strings.IndexFunc(w, unicode.IsControl) >= 0 || !utf8.ValidString(w):
		escaped := strconv.QuoteToASCII(w)
		return "$'" + strings.ReplaceAll(escaped[1:len(escaped)-1], "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// CommandLine is the command that asks the same question in a shell: its words, and a flag for every field that differs
// from its default.
func CommandLine(words []string, question any) []string {
	line := append([]string{"busbar"}, words...)
	v := reflect.Indirect(reflect.ValueOf(question))
	var arguments []string
	for _, p := range Params(question) {
		f := v.FieldByIndex(p.index)
		if f.IsZero() {
			continue
		}
		if f = reflect.Indirect(f); f.Kind() != reflect.Slice && fmt.Sprint(f.Interface()) == p.Default {
			continue
		}
		flag := "--" + p.Name
		if p.Names != "" && p.Short != "" {
			flag = "-" + p.Short
		}
		var values []string
		switch f.Kind() {
		case reflect.Slice:
			for i := range f.Len() {
				values = append(values, fmt.Sprint(f.Index(i).Interface()))
			}
			if p.Listed {
				values = []string{strings.Join(values, ",")}
			}
		case reflect.Bool:
			line = append(line, flag)
		default:
			values = []string{fmt.Sprint(f.Interface())}
		}
		for _, text := range values {
			if p.Argument {
				arguments = append(arguments, text)
			} else {
				line = append(line, flag, text)
			}
		}
	}
	return append(line, arguments...)
}

// Fields of questions are texts, as flags, addresses and JSON have them, so that one struct serves all three. A Go
// program's values write themselves: Size(bytes.Exact()), Op(coll.AllGather.String()). Types of package workload
// (Recompute, Precision, …) and of its pipeline have constants.
type (
	// Op names a collective: all_reduce, AllReduce or all_reduce_perf.
	Op string
	// Size is a size such as 64K, 1.32GB or 25MiB; where a question takes several, they are separated by commas.
	Size string
	// Dtype names the type of elements: float, bf16, f8e4m3.
	Dtype string
	// Layout is who takes part, as NODESxGPUS: 2x4 is two nodes with four GPUs each; where a question takes several, they
	// are separated by commas.
	Layout string
	// Parallel are parallel degrees: dp=8,tp=4,zero=1.
	Parallel string
)

// LayoutOf is so many nodes with so many GPUs each.
func LayoutOf(nodes, gpus int) Layout { return Layout(fmt.Sprintf("%dx%d", nodes, gpus)) }

// commas joins texts.
func commas[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, l := range list {
		texts[i] = string(l)
	}
	return strings.Join(texts, ",")
}

func (s Size) bytes() (unit.Bytes, error)         { return unit.ParseBytes(string(s)) }
func (p Parallel) split() (workload.Split, error) { return workload.ParseSplit(string(p)) }

// kind is the collective that is named.
func (o Op) kind() (coll.Kind, error) {
	k, err := coll.ParseKind(string(o))
	return k, flagged("--op", err)
}

// dtype is the type that is named.
func (d Dtype) dtype() (coll.Dtype, error) {
	t, err := coll.ParseDtype(string(d))
	return t, flagged("--dtype", err)
}

// flagged says which flag an error is about.
func flagged(flag string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return err
}

// Values are the words that a parameter of a command can be, for whoever completes what people type: cluster, op, algo,
// dtype, nccl, model and proto have some. A cluster or a model can also be a file.
func Values(command, parameter string) []string {
	var list []string
	switch parameter {
	case "cluster":
		for _, p := range hardware.Presets() {
			list = append(list, p.Name)
		}
	case "op":
		for _, k := range coll.Kinds() {
			list = append(list, k.String())
		}
	case "algo":
		return algoValues(command)
	case "dtype":
		for d := range coll.Dtype(255) {
			if d.String() == fmt.Sprintf("type(%d)", d) {
				break
			}
			list = append(list, d.String())
		}
	case "nccl": // the newest first
		for minor := nccl.Newest.Minor; minor >= nccl.Oldest.Minor; minor-- {
			list = append(list, fmt.Sprintf("%d.%d", nccl.Newest.Major, minor))
		}
	case "model":
		return workload.Names()
	case "proto":
		return []string{"auto", "ll", "ll128", "simple"}
	}
	return list
}

// algoValues are algorithms, after what a command takes instead of one.
func algoValues(command string) []string {
	var list []string
	switch command {
	case "predict":
		list = []string{predict.Auto, predict.Best, predict.Each, predict.All}
	case "bench":
		list = []string{predict.Auto}
	}
	for _, b := range schedule.Builders() {
		list = append(list, b.Name)
	}
	return list
}

// FieldError is an error about one parameter of a question. What a question returns is one wherever the parameter is
// known; errors.As finds it.
type FieldError struct {
	// Field is the parameter, as Param.Name has it: size, global-batch.
	Field string

	text string
	err  error
}

// Error is the text, which names parameters as Field does, or as flags where Env.Flags asks for them.
func (e *FieldError) Error() string { return e.text }

// Unwrap is the error that it is made of.
func (e *FieldError) Unwrap() error { return e.err }

// Here and in the packages below, texts name a parameter by its flag (--size, -c), which nothing else is taken for. Who
// asks through the command gets them as they are; everybody else gets the parameter's name, as spelled writes it.

// spelled gives an error the names that its reader knows, and the parameter that it is about.
func (e *Env) spelled(err error) error {
	if err == nil || e.question == nil {
		return err
	}
	if already := (*FieldError)(nil); errors.As(err, &already) {
		return err // by the question that this one asked
	}
	text, first := unflagged(err.Error(), Params(e.question))
	var named interface{ Field() string }
	if errors.As(err, &named) {
		first = named.Field()
	}
	if e.Flags {
		text = err.Error()
	}
	if first == "" && text == err.Error() {
		return err
	}
	return &FieldError{Field: first, text: text, err: err}
}

// aboutNamed says that an error is about the parameter that names a cluster or a model, as its tag says.
func (e *Env) aboutNamed(what string, err error) error {
	if err == nil || e.question == nil {
		return err
	}
	for _, p := range Params(e.question) {
		if p.Names == what {
			return failure.In(p.Name, err)
		}
	}
	return err
}

// unflagged is a text with the names of parameters instead of their flags, and the first of them. Commands in the text
// stay.
func unflagged(text string, params []Param) (plain, first string) {
	if !strings.Contains(text, "-") {
		return text, ""
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		rest := text[at:]
		begins := at == 0 || strings.ContainsRune(" (\n", rune(text[at-1]))
		if n := commandLen(rest); n > 0 && (begins || text[at-1] == '`') {
			b.WriteString(rest[:n])
			at += n
			continue
		}
		if p, n := flagAt(rest, params); begins && p != nil {
			b.WriteString(p.Name)
			if first == "" {
				first = p.Name
			}
			at += n
			continue
		}
		b.WriteByte(text[at])
		at++
	}
	return b.String(), first
}

// commandLen is how much of a text is a command line, whose flags are not the question's: up to a sign that ends it.
func commandLen(text string) int {
	begin := 0
	for _, program := range []string{"busbar ", "nvidia-smi "} {
		if strings.HasPrefix(text, program) {
			begin = len(program)
		}
	}
	if begin == 0 {
		return 0
	}
	for i := begin; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte(";()`\n", c) >= 0:
			return i
		case (c == ',' || c == ':') && (i+1 == len(text) || text[i+1] == ' '):
			return i
		}
	}
	return len(text)
}

// flagAt is the parameter whose flag a text begins with, and the length of the flag with the placeholder behind it.
func flagAt(text string, params []Param) (*Param, int) {
	if len(text) < 2 || text[0] != '-' {
		return nil, 0
	}
	end := len(text) - len(strings.TrimLeft(text, "-abcdefghijklmnopqrstuvwxyz0123456789"))
	flag := strings.TrimRight(text[:end], "-")
	i := slices.IndexFunc(params, func(p Param) bool {
		return !p.Argument && (flag == "--"+p.Name || p.Short != "" && flag == "-"+p.Short)
	})
	if i < 0 {
		return nil, 0
	}
	p, n := &params[i], len(flag)
	if word := " " + p.Placeholder; p.Placeholder != "" && strings.HasPrefix(text[n:], word) {
		n += len(word)
	}
	return p, n
}
