package cluster

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/unit"
)

// joinFields adds what a further source says of a thing to what is known of it; both point to structs of one type. What
// is unknown (zero) takes the further word. Of two facts the one of the greater origin stays, of counters the greater,
// since they only grow, and of anything else the first.
//
// The tag merge of a field is what warnings call it; where it has none, a difference is nothing to warn of. Fields with
// merge:"-" are joined by who calls.
func (m *merging) joinFields(where string, to, from any) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range a.NumField() {
		if b.Field(i).IsZero() {
			continue
		}
		if f := a.Type().Field(i); f.Tag.Get("merge") != "-" {
			m.joinField(where, f, a.Field(i), b.Field(i))
		}
	}
}

func (m *merging) joinField(where string, f reflect.StructField, a, b reflect.Value) {
	if a.Kind() == reflect.Pointer {
		if a.IsNil() {
			a.Set(reflect.New(a.Type().Elem())) // the other's own belongs to its fragment
		}
		m.joinFields(where, a.Interface(), b.Interface())
		return
	}
	was, differ := a.Interface(), false
	switch to := a.Addr().Interface().(type) {
	case interface{ better(other any) (differ bool) }: // a fact
		differ = to.better(b.Interface())
	case *map[string]uint64:
		*to = mergeCounters(*to, b.Interface().(map[string]uint64))
	default:
		if a.IsZero() {
			a.Set(b)
		}
		differ = a.Comparable() && !a.Equal(b)
	}
	what := f.Tag.Get("merge")
	if what == "" {
		return
	}
	if differ {
		m.warnDiffer(where, what, was, b.Interface(), a.Interface())
	}
	if m.gave != nil && was != a.Interface() {
		m.gave[where+what] = m.add
	}
}

// warnDiffer says what two sources call a thing, and what was kept.
func (m *merging) warnDiffer(where, what string, was, says, kept any) {
	m.warn(where, what+" %v in %s, %v in %s; kept %v", bare(was), cmp.Or(m.gave[where+what], m.src), bare(says), m.add,
		bare(kept))
}

// bare is the value of a fact, and anything else as it is.
func bare(x any) any {
	if f, ok := x.(interface{ bare() any }); ok {
		return f.bare()
	}
	return x
}

func (f Fact[T]) bare() any { return f.Value }

// better takes over a fact of the same thing where that has the greater origin, or gives a device its fuller name. It
// reports whether the two differ and neither is a rule of thumb.
func (f *Fact[T]) better(other any) (differ bool) {
	was, is := *f, other.(Fact[T])
	if !was.Known() {
		*f = is
		return false
	}
	same := alike(was.Value, is.Value)
	if is.Origin > was.Origin || same && is.Origin > Assumed && fullerName(is.Value, was.Value) {
		*f = is
	}
	if same && was.Origin > Assumed && fullerName(was.Value, is.Value) {
		*f = was
	}
	return !same && was.Origin > Assumed && is.Origin > Assumed
}

// alike reports whether two figures, or two names of a device, may be of the same thing.
func alike(x, y any) bool {
	switch a := x.(type) {
	case unit.Rate:
		// Tools round, and some quote an 8b/10b link (InfiniBand to QDR) before its coding: 40 for 32.
		low, high := min(float64(a), float64(y.(unit.Rate))), max(float64(a), float64(y.(unit.Rate)))
		return high-low <= 0.03*high || math.Abs(low/high-0.8) < 0.005
	case unit.Bytes: // the driver keeps a part of a GPU's memory
		b := float64(y.(unit.Bytes))
		return math.Abs(float64(a)-b) <= 0.1*math.Max(float64(a), b)
	case string:
		b := y.(string)
		return a == b || isPartNumber(a) != isPartNumber(b) || namesModel(a, b) || namesModel(b, a)
	}
	return x == y
}

// fullerName reports whether the first name of a device says more: of "h100", as a scheduler calls it, and "NVIDIA H100
// 80GB HBM3" the second. The part number by which InfiniBand tools call an adapter (MT4129) says less than any name.
func fullerName(x, y any) bool {
	a, ok := x.(string)
	if !ok || a == y || isPartNumber(a) {
		return false
	}
	b := y.(string)
	return isPartNumber(b) || namesModel(a, b)
}

// namesModel reports whether all words of the shorter name are in the longer, whatever stands between them.
func namesModel(long, short string) bool {
	words := modelWords(short)
	have := modelWords(long)
	return len(words) > 0 && len(have) >= len(words) &&
		!slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(have, w) })
}

func modelWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) })
}

func isPartNumber(s string) bool {
	digits, ok := strings.CutPrefix(s, "MT")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// mergeCounters keeps the greater of each counter.
func mergeCounters(a, b map[string]uint64) map[string]uint64 {
	m := make(map[string]uint64, len(a)+len(b))
	maps.Copy(m, a)
	for k, v := range b {
		m[k] = max(m[k], v)
	}
	return m
}
