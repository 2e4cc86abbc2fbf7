package main

import (
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"busbar.dev/ask"
)

// grammar is what the arguments are read by. A run uses one command, and reading the flags of all of
// them took longer than most commands' work: where the first word names one, the others are left
// out. Whatever else may come first, such as --help or a word that is misspelt, needs them all.
func grammar(args []string) (commands any, whole bool) {
	fields := reflect.VisibleFields(reflect.TypeFor[command]())
	if len(args) > 0 && !slices.Contains([]string{"man", "completion", "list"}, args[0]) { // which are about all commands
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool { return strings.ToLower(f.Name) == args[0] })
		if at >= 0 {
			return reflect.New(reflect.StructOf(fields[at : at+1])).Interface(), false
		}
		if q := ask.Named(args[0]); q != nil && q.Help != "" {
			return &struct{}{}, false
		}
	}
	return reflect.New(reflect.StructOf(fields)).Interface(), true
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
