// Package words writes numbers, and what is wrong with a JSON text, as sentences have them.
package words

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Plural is a number of things: 1 node, 2 nodes, 3 switches.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		one += "e"
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// Thousands is a whole number with commas: 336,226,108.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Numbers writes sorted numbers, as of ranks or channels, with their runs drawn together: 0-3, 8. Of very many, the
// first dozen.
func Numbers(list []int) string {
	const most = 12
	var out []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if len(out) >= most {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(list)-i)
		}
		if k > i+1 {
			out = append(out, fmt.Sprintf("%d-%d", list[i], list[k]))
		} else {
			for ; i < k; i++ {
				out = append(out, strconv.Itoa(list[i]))
			}
			out = append(out, strconv.Itoa(list[k]))
		}
		i = k + 1
	}
	return strings.Join(out, ", ")
}

// Distance is the number of letters to insert, drop or replace to turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// JSON says in the words of JSON which field has a value of the wrong kind, or that the text has no end. Other errors
// are their own.
func JSON(err error) error {
	var t *json.UnmarshalTypeError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text is cut off")
	}
	if !errors.As(err, &t) || t.Type == nil {
		return err
	}
	expected := "null or nothing"
	switch t.Type.Kind() {
	case reflect.Int, reflect.Uint64:
		expected = "a whole number"
	case reflect.Float64:
		expected = "a number"
	case reflect.String:
		expected = "text in quotes"
	case reflect.Bool:
		expected = "true or false"
	case reflect.Slice:
		expected = "a list"
	case reflect.Map, reflect.Struct:
		expected = "an object"
	}
	return fmt.Errorf("%s has a JSON %s where %s belongs", cmp.Or(t.Field, "it"), t.Value, expected)
}

// Pairs are the names of a text, each with what stands behind it: "a=1|b=2".
func Pairs(text string) map[string]string {
	of := map[string]string{}
	for part := range strings.SplitSeq(text, "|") {
		name, value, _ := strings.Cut(part, "=")
		of[name] = value
	}
	return of
}
