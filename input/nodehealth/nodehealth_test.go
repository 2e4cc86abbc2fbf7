package nodehealth

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"busbar.dev/finding"
)

const states = `[
 {"component": "accelerator-a", "states": [
  {"time": "2026-01-02T03:04:05Z", "component": "accelerator-a", "name": "xid", "health": "Unhealthy", "reason": "xid 79 seen",
   "suggested_actions": {"description": "GPU fell off the bus", "repair_actions": ["REBOOT_SYSTEM", "HARDWARE_INSPECTION"]}}]},
 {"component": "disk", "states": [{"time": null, "health": "Healthy"}, {"health": "Degraded", "reason": "91% full", "error": "e"}]},
 {"component": "new", "states": [{"health": "Initializing"}]}]`

const verdict = `{"schema": 1, "node": {"name": "n7"}, "overall_severity": "CRITICAL", "summary": {"affected": [
 {"category": "gpu", "check_ids": ["gpu_power_state", "gpu_xid_79"], "entities": ["gpu:3"], "max_severity": "CRITICAL"},
 {"category": "nvlink", "check_ids": ["nvlink_active"], "entities": [], "max_severity": "WARNING"},
 {"category": "cpu", "check_ids": ["cpu_count"], "max_severity": "INFO"}]}}`

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		text string
		read func(name, text string) ([]finding.Finding, error)
		want []string
	}{
		{states, gpud, []string{
			"gpud-accelerator-a error gpud: accelerator-a is Unhealthy: xid 79 seen | GPU fell off the bus: REBOOT_SYSTEM, " +
				"HARDWARE_INSPECTION",
			"gpud-disk warn gpud: disk is Degraded: 91% full: e | ",
		}},
		{"[]", gpud, nil},
		{verdict, check, []string{
			"health-validation-gpu error NVIDIA Health Validation: gpu is CRITICAL: gpu_power_state, gpu_xid_79: gpu:3 | ",
			"health-validation-nvlink warn NVIDIA Health Validation: nvlink is WARNING: nvlink_active | ",
		}},
		{`{"overall_severity": "PASS"}`, check, nil},
		{
			`{"overall_severity": "UNKNOWN"}`, check,
			[]string{"health-validation note NVIDIA Health Validation: the node is UNKNOWN | "},
		},
	} {
		list, err := tt.read("x.json", tt.text)
		var got []string
		for _, f := range list {
			got = append(got, fmt.Sprintf("%s %s %s | %s", f.ID, f.Severity, f.Text, f.Fix))
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	for _, bad := range []string{"", "[", "{}", `{"overall_severity": 3}`, "[1]", `[{"component": 1}]`, "null"} {
		_, err1 := gpud("x.json", bad)
		_, err2 := check("x.json", bad)
		if err1 == nil && bad != "null" || err2 == nil || !strings.Contains(err2.Error(), "x.json: ") {
			t.Errorf("%q: %v, %v", bad, err1, err2)
		}
	}
	if deep := `{"overall_severity": "PASS", "a": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
		"}"; !MatchVerdict([]byte(deep)) {
		t.Error("not matched")
	} else if list, err := check("x.json", deep); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := gpud("x.json", "["+strings.Repeat(`{"component":"a","states":[{"health":"Unhealthy"}]},`, maxFindings+1)+`{}]`); err == nil {
		t.Error("a list without end")
	}
	if !MatchGpud([]byte(states)) || MatchGpud([]byte(verdict)) || !MatchVerdict([]byte(verdict)) ||
		MatchVerdict([]byte(states)) {
		t.Error("taken for another")
	}
}

func gpud(name, text string) ([]finding.Finding, error) {
	return ReadGpud(name, strings.NewReader(text))
}

func check(name, text string) ([]finding.Finding, error) {
	return ReadVerdict(name, strings.NewReader(text))
}

func fuzz(f *testing.F, read func(name, text string) ([]finding.Finding, error)) {
	f.Add(states)
	f.Add(verdict)
	f.Add(`[{"component": "\u0000", "states": [{"health": "Unhealthy"}]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := read("x", text)
		if err != nil {
			return
		}
		for _, x := range list {
			if x.ID == "" || x.Text == "" || len(x.Text)+len(x.Fix) > 2*maxText || x.Severity < finding.Note {
				t.Errorf("%+v", x)
			}
		}
	})
}

func FuzzGpud(f *testing.F) { fuzz(f, gpud) }

func FuzzVerdict(f *testing.F) { fuzz(f, check) }
