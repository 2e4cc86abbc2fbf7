package query

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/measure"
	"busbar.dev/result"
)

// wrongs are the documents that say whether something is wrong.
var wrongs = []interface{ Wrong() bool }{
	new(AuditDoc), new(DiffDoc), new(BenchDoc), new(BenchGPUDoc), new(measure.GPUNode),
	new(BenchPairsDoc),
	new(measure.RDMA), new(CalibrateDoc), new(measure.Check), new(DoctorBenchDoc), new(DoctorDoc), new(HangDoc),
	new(JobsDoc),
	new(NeedDoc),
	new(OrderCheckDoc), new(OrderDoc), new(PathDoc), new(TraceDoc), new(ValidateDoc),
}

// TestWrongDecoded fills documents with anything, also where JSON has nothing of it: Wrong says the same of what was
// read back.
func TestWrongDecoded(t *testing.T) {
	for _, d := range wrongs {
		kind := reflect.TypeOf(d).Elem()
		t.Run(kind.Name(), func(t *testing.T) {
			seen := map[bool]bool{}
			for seed := range uint64(200) {
				fresh, back := reflect.New(kind), reflect.New(kind)
				fill(rand.New(rand.NewPCG(seed, 1)), fresh.Elem(), 0)
				text, err := json.Marshal(fresh.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(text, back.Interface()); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				was, is := fresh.Interface().(interface{ Wrong() bool }).Wrong(),
					back.Interface().(interface{ Wrong() bool }).Wrong()
				if was != is {
					t.Fatalf("Wrong is %v, and %v read back from %s", was, is, text)
				}
				seen[was] = true
			}
			if len(seen) != 2 {
				t.Errorf("only %v was seen", seen)
			}
		})
	}
}

// fill sets everything that can be set. Values are such as their types' texts can say.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *time.Time, *result.Sweeps:
		return
	case *coll.Kind:
		*x = coll.AllReduce
		return
	case *fleet.Name:
		*x = "gpu01"
		return
	case *finding.Severity:
		*x = finding.Severity(r.IntN(3))
		return
	}
	if depth > 8 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(2)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(2))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(r.IntN(2)))
	case reflect.String:
		v.SetString([]string{"", "note", "error", "never", "?", "healthy", "failed"}[r.IntN(7)])
	case reflect.Pointer:
		if embedded := depth == 1; embedded || r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if r.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(r, v.Index(0), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	}
}

// TestDecodedRequest asks a placement that was read back for its request.
func TestDecodedRequest(t *testing.T) {
	again := func(from, to any) {
		text, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	place, err := Place{Job: Job{Cluster: "dgx-h100:4", Model: "llama3-8b", Parallel: "zero=3"}, Nodes: 2}.Run(ctx, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var back PlaceDoc
	again(place, &back)
	if was, is := fmt.Sprintf("%+v", place.Request()), fmt.Sprintf("%+v", back.Request()); was != is {
		t.Errorf("%s read back is %s", was, is)
	}
}
