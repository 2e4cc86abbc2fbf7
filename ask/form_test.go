package ask

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// suffixes are how the name of a field ends whose value is a quantity: names say their unit, and there is one of each.
var suffixes = map[reflect.Type]string{
	reflect.TypeFor[unit.Time](): "_s", reflect.TypeFor[unit.Span](): "_s", reflect.TypeFor[unit.Bytes](): "bytes",
	reflect.TypeFor[unit.Volume](): "bytes", reflect.TypeFor[unit.Rate](): "GBps", reflect.TypeFor[unit.FLOPS](): "TFLOPS",
	reflect.TypeFor[unit.Power](): "_W",
}

// otherUnits end names whose value is in a unit that no document has.
var otherUnits = regexp.MustCompile(`(^|_)(?i:[munp]s|micros|millis|minutes|[kmgt]i?b|[kmt]i?bps)$|_Gbps$`)

// asPrinted are fields in the unit that another program prints them in.
var asPrinted = map[string]string{
	"latency_us": "NCCL's TUNING log, of --nccl-plan", "us": "the protocol of busbar-gpu, docs/format/gpu.md",
}

// TestOneForm holds every field of every document to one unit of each quantity: seconds, bytes, GB/s in one direction.
func TestOneForm(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(x reflect.Type, within, path string)
	walk = func(x reflect.Type, within, path string) {
		if suffix, ok := suffixes[x]; ok {
			if !strings.Contains(within, suffix) {
				t.Errorf("%s: a %v; expected a name with %s", path, x, suffix)
			}
			return
		}
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(x.Elem(), within, path)
		case reflect.Struct:
			parts := quantities.MatchString(x.Name())
			if seen[x] {
				return
			}
			seen[x] = !parts
			eachField(x, func(name string, f reflect.StructField) {
				if name == "" || parts {
					walk(f.Type, within, path+"."+name)
					return
				}
				if otherUnits.MatchString(name) && asPrinted[name] == "" {
					t.Errorf("%s.%s: expected _s, _bytes or _GBps", path, name)
				}
				walk(f.Type, name, path+"."+name)
			})
		}
	}
	for _, q := range append([]*Question{Audit, Path}, Questions...) {
		run, _ := reflect.TypeOf(q.New()).Elem().MethodByName("Run")
		walk(run.Type.Out(0), "", q.Name)
	}
	for _, d := range []any{
		query.BenchDoc{},
		query.BenchPairsDoc{},
		query.BenchGPUDoc{},
		query.BenchStepDoc{},
		query.CalibrateDoc{},
		query.ValidateDoc{},
		query.NodesDoc{},
		query.LinkDoc{},
		measure.RDMA{},
		measure.GPUNode{},
		measure.Check{},
	} {
		walk(reflect.TypeOf(d), "", reflect.TypeOf(d).Name())
	}
	if len(seen) < 100 {
		t.Errorf("%d types were seen; expected those of all documents", len(seen))
	}
}

// eachField are the fields of a struct as JSON has them; embedded ones without a name.
func eachField(x reflect.Type, do func(name string, f reflect.StructField)) {
	for i := range x.NumField() {
		f := x.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" && (f.IsExported() || f.Anonymous) && (name != "" || f.Anonymous) {
			do(name, f)
		}
	}
}

// quantities are structs of several figures of one quantity, whose unit the name of the field says that holds them:
// what runs took, a fact with its origin, the parts of memory.
var quantities = regexp.MustCompile(`^(Times|Spread|Memory|(factJSON|Fact)\[.*)$`)
