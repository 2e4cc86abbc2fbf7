package hardware

import (
	"embed"

	"busbar.dev/internal/csvtable"
)

// tables are the catalogue. Each is parsed when it is first asked for.
//
//go:embed data/*.csv
var tables embed.FS

// load reads a table.
func load[T any](name string) []T {
	file := "data/" + name + ".csv"
	text, err := tables.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return csvtable.Must[T](file, string(text))
}

// byName is a table whose rows are found by name.
func byName[T any](name string, key func(*T) string) map[string]*T {
	rows := load[T](name)
	m := make(map[string]*T, len(rows))
	for i := range rows {
		m[key(&rows[i])] = &rows[i]
	}
	return m
}
