// Package csvtable reads the catalogues that travel in the program as CSV files.
// A row is a struct whose tagged fields name their columns:
//
//	Name   string     `csv:"name"`
//	Memory unit.Bytes `csv:"memory"`        // text that the type parses: 80 GiB
//	HBM    unit.Rate  `csv:"memory_TBps"`   // a number in the unit at the end of the column's name
//	Also   []string   `csv:"also,optional"` // separated by |; []int likewise
//	Shared bool       `csv:"shared,optional"` // yes, or empty
//
// Every column has a field, and every field that is not optional a column without
// an empty value; the first column is the key and has no value twice. Lines that
// begin with # are comments.
package csvtable

import (
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Read decodes a table. The error names the line and the column.
func Read[T any](text string) ([]T, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		return nil, err
	}
	columns, err := plan(reflect.TypeFor[T](), head)
	if err != nil {
		return nil, err
	}
	rows := make([]T, 0, strings.Count(text, "\n"))
	keys := make(map[string]bool)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		if keys[record[0]] {
			return nil, fmt.Errorf("line %d: %s %q stands there twice", line, columns[0].name, record[0])
		}
		keys[record[0]] = true
		rows = append(rows, *new(T))
		v := reflect.ValueOf(&rows[len(rows)-1]).Elem()
		for i, c := range columns {
			if err := c.set(v, record[i]); err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", line, c.name, err)
			}
		}
	}
}

// Must is Read for a table that is part of the program, which a test has read before.
func Must[T any](name, text string) []T {
	rows, err := Read[T](text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return rows
}

// Once is Must when it is first asked for.
func Once[T any](name, text string) func() []T {
	return sync.OnceValue(func() []T { return Must[T](name, text) })
}

var unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// column is where the values of a column go.
type column struct {
	name     string
	optional bool
	index    []int
	scale    float64
	text     bool // the type reads its own text
}

// plan finds a field for every column and a column for every tagged field.
func plan(row reflect.Type, head []string) ([]column, error) {
	fields := make(map[string]column)
	for _, f := range reflect.VisibleFields(row) {
		tag, ok := f.Tag.Lookup("csv")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		c := column{name: name, optional: option == "optional", index: f.Index, scale: 1}
		if f.Type.PkgPath() != "" { // a plain number stays in the unit that its column names
			c.scale = scaleOf(name)
		}
		c.text = c.scale == 0 && reflect.PointerTo(f.Type).Implements(unmarshaler)
		fields[name] = c
	}
	columns := make([]column, 0, len(head))
	for _, name := range head {
		c, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("column %q: no such column, or it stands there twice", name)
		}
		columns = append(columns, c)
		delete(fields, name)
	}
	for name, c := range fields {
		if !c.optional {
			return nil, fmt.Errorf("column %q is missing", name)
		}
	}
	return columns, nil
}

// scaleOf is what a number is multiplied by where the column's name ends in a
// unit; 0 where the values are text with units of their own.
func scaleOf(column string) float64 {
	switch column[strings.LastIndexByte(column, '_')+1:] {
	case "TFLOPS", "TBps":
		return 1e12
	case "GBps":
		return 1e9
	case "Gbps":
		return 1e9 / 8
	case "us":
		return 1e6 // unit.Time counts picoseconds
	case "ns":
		return 1e3
	case "W":
		return 1
	}
	return 0
}

func (c *column) set(row reflect.Value, text string) error {
	if text == "" {
		if c.optional {
			return nil
		}
		return errors.New("empty")
	}
	v := row.FieldByIndex(c.index)
	if c.text {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		return c.setInt(v, text)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f * max(c.scale, 1))
		return err
	case reflect.Bool:
		if text != "yes" {
			return fmt.Errorf("%q; expected yes or nothing", text)
		}
		v.SetBool(true)
	case reflect.Slice:
		return c.setList(v, strings.Split(text, "|"))
	default:
		return fmt.Errorf("no reader of %s", v.Type())
	}
	return nil
}

// setList reads a list of texts or of whole numbers.
func (c *column) setList(v reflect.Value, parts []string) error {
	if v.Type().Elem().Kind() != reflect.Int {
		v.Set(reflect.ValueOf(parts))
		return nil
	}
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return fmt.Errorf("%q; expected whole numbers with | between them", p)
		}
		v.Set(reflect.Append(v, reflect.ValueOf(n)))
	}
	return nil
}

func (c *column) setInt(v reflect.Value, text string) error {
	if c.scale > 1 {
		f, err := strconv.ParseFloat(text, 64)
		v.SetInt(int64(math.Round(f * c.scale)))
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	v.SetInt(n)
	return err
}
