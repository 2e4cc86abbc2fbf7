package report_test

import (
	"encoding/json"
	"io"
	"reflect"
	"testing"

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
		d, back := new(D), new(D)
		populate(reflect.ValueOf(d).Elem(), 0)
		text, err := json.Marshal(d)
		if err == nil {
			err = json.Unmarshal(text, back)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := show(io.Discard, back); err != nil {
			t.Error(err)
		}
	}
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

// TestDecoded shows documents that were read from JSON: what cannot be shown is refused, and nothing panics.
func TestDecoded(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"predict":  shown(verbosely(report.Predict)),
		"curves":   shown(func(w io.Writer, d *query.PredictDoc) error { _, err := report.Curves(d); return err }),
		"step":     shown(verbosely(report.Step)),
		"timeline": shown(func(w io.Writer, d *query.StepDoc) error { _, _ = report.StepTimeline(d); return nil }),
		"trace":    shown(report.StepTrace),
		"plan":     shown(verbosely(report.Plan)),
		// one of everything is no cluster, which is refused
		"map":        shown(func(w io.Writer, d *query.MapDoc) error { _ = verbosely(report.Map)(w, d); return nil }),
		"path":       shown(verbosely(report.Paths)),
		"audit":      shown(verbosely(report.Audit)),
		"diff":       shown(verbosely(report.BenchDiff)),
		"gpu":        shown(verbosely(report.BenchGPU)),
		"gpu node":   shown(verbosely(report.BenchGPUNode)),
		"pairs":      shown(verbosely(report.BenchPairs)),
		"rdma":       shown(verbosely(report.BenchRDMA)),
		"bench step": shown(verbosely(report.BenchStep)),
		"bench":      shown(verbosely(benched)),
		"bench end":  shown(verbosely(report.BenchEnd)),
		"calibrate":  shown(verbosely(func(p *report.Page, d *query.CalibrateDoc) { report.Calibrate(p, d, "") })),
		"curve": shown(func(w io.Writer, d *query.DoctorBenchDoc) error {
			_,
				err := report.MeasuredCurve(d)
			return err
		}),
		"measured": shown(verbosely(report.DoctorBench)),
		"envelope": shown(verbosely(report.Envelope)),
		"experts":  shown(verbosely(report.Experts)),
		"goodput":  shown(verbosely(report.Goodput)),
		"hang":     shown(verbosely(report.Hang)),
		"jobs":     shown(verbosely(report.Jobs)),
		"need":     shown(verbosely(report.Need)),
		"nodes":    shown(verbosely(report.Nodes)),
		"place":    shown(verbosely(report.Place)),
		"scale":    shown(verbosely(report.Scale)),
		"schedule": shown(verbosely(report.Sched)),
		"selftest": shown(verbosely(report.SelfTest)),
		"traced":   shown(verbosely(report.Traced)),
		"validate": shown(verbosely(report.Validate)),
	} {
		t.Run(name, test)
	}
}
