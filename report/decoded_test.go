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
	o := report.TextOptions{}
	for name, test := range map[string]func(*testing.T){
		"predict": shown(func(w io.Writer, d *query.PredictDoc) error { return report.Predict(w, d, o) }),
		"curves":  shown(func(w io.Writer, d *query.PredictDoc) error { _, err := report.Curves(d); return err }),
		"step": shown(func(w io.Writer,
			d *query.StepDoc,
		) error {
			return report.Step(w, d, report.TextOptions{Groups: true})
		}),
		"timeline": shown(func(w io.Writer, d *query.StepDoc) error { _, _ = report.StepTimeline(d); return nil }),
		"trace":    shown(report.StepTrace),
		"plan":     shown(report.Plan),
		// one of everything is no cluster, which is refused
		"map":        shown(func(w io.Writer, d *query.MapDoc) error { _ = report.Map(w, d, o); return nil }),
		"path":       shown(report.Paths),
		"audit":      shown(func(w io.Writer, d *query.AuditDoc) error { return report.Audit(w, d, o) }),
		"diff":       shown(func(w io.Writer, d *query.BenchDiffDoc) error { return report.BenchDiff(w, d, true) }),
		"gpu":        shown(report.BenchGPU),
		"gpu node":   shown(report.BenchGPUNode),
		"pairs":      shown(report.BenchPairs),
		"rdma":       shown(report.BenchRDMA),
		"bench step": shown(func(w io.Writer, d *query.BenchStepDoc) error { return report.BenchStep(w, d, true) }),
		"bench":      shown(func(w io.Writer, d *query.BenchDoc) error { return report.Bench(w, d, 0) }),
		"bench end":  shown(report.BenchEnd),
		"calibrate":  shown(func(w io.Writer, d *query.CalibrateDoc) error { return report.Calibrate(w, d, "") }),
		"curve": shown(func(w io.Writer, d *query.DoctorBenchDoc) error {
			_,
				err := report.MeasuredCurve(d)
			return err
		}),
		"measured": shown(func(w io.Writer, d *query.DoctorBenchDoc) error { return report.DoctorBench(w, d, o) }),
		"envelope": shown(report.Envelope),
		"experts":  shown(report.Experts),
		"goodput":  shown(report.Goodput),
		"hang":     shown(func(w io.Writer, d *query.HangDoc) error { return report.Hang(w, d, o) }),
		"jobs":     shown(func(w io.Writer, d *query.JobsDoc) error { return report.Jobs(w, d, o) }),
		"need":     shown(report.Need),
		"nodes":    shown(report.Nodes),
		"place":    shown(report.Place),
		"scale":    shown(report.Scale),
		"schedule": shown(report.Sched),
		"selftest": shown(report.SelfTest),
		"traced":   shown(func(w io.Writer, d *query.TraceDoc) error { return report.Traced(w, d, o) }),
		"validate": shown(func(w io.Writer, d *query.ValidateDoc) error { return report.Validate(w, d, true) }),
	} {
		t.Run(name, test)
	}
}
