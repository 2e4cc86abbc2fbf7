package report_test

import (
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"busbar.dev/ask"
	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/nccl"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/result"
)

// shown makes a test of a function that shows a document.
func shown[D any](show func(w io.Writer, d *D) error) func(t *testing.T) {
	return func(t *testing.T) {
		if err := show(io.Discard, decoded(t, reflect.TypeFor[D]()).(*D)); err != nil {
			t.Error(err)
		}
	}
}

// decoded is a document of a type with one of everything, read from JSON.
func decoded(t *testing.T, document reflect.Type) any {
	t.Helper()
	d, back := reflect.New(document), reflect.New(document)
	populate(d.Elem(), 0)
	text, err := json.Marshal(d.Interface())
	if err == nil {
		err = json.Unmarshal(text, back.Interface())
	}
	if err != nil {
		t.Fatal(err)
	}
	return back.Interface()
}

// populate makes one of everything that JSON has.
func populate(v reflect.Value, depth int) {
	if !v.CanSet() {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *result.Sweeps:
		return
	case *coll.Kind:
		*x = coll.AllReduce
		return
	case *fleet.Name:
		*x = "gpu01"
		return
	case *nccl.Version:
		*x = nccl.Newest
		return
	}
	switch {
	case depth > 6:
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		populate(v.Elem(), depth+1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		populate(v.Index(0), depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				populate(v.Field(i), depth+1)
			}
		}
	}
}

// TestDecoded shows documents that were read from JSON: what cannot be shown is refused, and nothing panics. Those of
// ask's questions are shown as text; what else is made of documents is listed.
func TestDecoded(t *testing.T) {
	for _, q := range append(ask.Questions, ask.Audit, ask.Path) {
		run, _ := reflect.TypeOf(q.New()).MethodByName("Run")
		t.Run(q.Name, func(t *testing.T) {
			back := decoded(t, run.Type.Out(0).Elem())
			err := q.Text(io.Discard, back, report.TextOptions{Verbose: true})
			if err != nil && q != ask.Map { // one of everything is no cluster, which is refused
				t.Error(err)
			}
		})
	}
	for name, test := range map[string]func(*testing.T){
		"curves":     shown(func(w io.Writer, d *query.PredictDoc) error { _, err := report.Curves(d); return err }),
		"timeline":   shown(func(w io.Writer, d *query.StepDoc) error { _, _ = report.StepTimeline(d); return nil }),
		"trace":      shown(report.StepTrace),
		"diff":       shown(verbosely(report.Diff)),
		"gpu":        shown(verbosely(report.BenchGPU)),
		"gpu node":   shown(verbosely(report.BenchGPUNode)),
		"pairs":      shown(verbosely(report.BenchPairs)),
		"rdma":       shown(verbosely(report.BenchRDMA)),
		"bench step": shown(verbosely(report.BenchStep)),
		"bench":      shown(verbosely(benched)),
		"bench end":  shown(verbosely(report.BenchEnd)),
		"calibrate":  shown(verbosely(func(p *report.Page, d *query.CalibrateDoc) { report.Calibrate(p, d, "") })),
		"curve": shown(func(w io.Writer, d *query.DoctorBenchDoc) error {
			_, err := report.MeasuredCurve(d)
			return err
		}),
		"nodes":    shown(verbosely(report.Nodes)),
		"schedule": shown(verbosely(report.Sched)),
		"validate": shown(verbosely(report.Validate)),
	} {
		t.Run(name, test)
	}
}
