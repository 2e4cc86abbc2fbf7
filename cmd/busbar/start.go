package main

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/ask"
)

// grammar is what the arguments are read by. A run uses one command, and reading the flags of all of
// them took longer than most commands' work: where the first word names one, the others are left
// out. Whatever else may come first, such as --help or a word that is misspelt, needs them all.
func grammar(args []string) any {
	fields := reflect.VisibleFields(reflect.TypeFor[command]())
	at := func(word string) int {
		return slices.IndexFunc(fields, func(f reflect.StructField) bool { return wordOf(f.Name) == word })
	}
	questions := map[string]*ask.Question{}
	for _, q := range ask.Questions {
		if q.Help != "" {
			f := reflect.StructField{
				Name: fieldOf(q.Name), Type: reflect.TypeFor[askCmd](), Tag: reflect.StructTag(fmt.Sprintf(`cmd:"" help:%q`, q.Help)),
			}
			questions[f.Name], fields = q, slices.Insert(fields, at(q.After)+1, f)
		}
	}
	if i := -1; len(args) > 0 && args[0] != "man" && args[0] != "completion" { // which are about all commands
		if i = at(args[0]); i >= 0 {
			fields = []reflect.StructField{fields[i], fields[len(fields)-1]}
		}
	}
	whole := reflect.New(reflect.StructOf(fields))
	for _, f := range fields {
		if q := questions[f.Name]; q != nil {
			whole.Elem().FieldByName(f.Name).Set(reflect.ValueOf(askCmd{Ask: q.New(), question: q}))
		}
	}
	return whole.Interface()
}

// fieldOf is the field that kong makes a command's word of.
func fieldOf(word string) string {
	name := ""
	for part := range strings.SplitSeq(word, "-") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// wordOf is a command's word as kong makes it of its field: self-test of SelfTest.
func wordOf(field string) string {
	var b strings.Builder
	for i, r := range field {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// lateCollection puts the first collection of garbage off until the heap is eight times as large as it
// would be, 32 MB: most commands are done before. From then on all is as usual.
func lateCollection() {
	const usual, first = 100, 800
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(first)
	runtime.AddCleanup(new([64]byte), func(int) { debug.SetGCPercent(usual) }, 0)
}
