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

// Made up, in the layout of DCGM 3.3, the last test but one in that of DCGM 4.
const diag = `$ dcgmi diag -r 3
+-------------+------------------------------------------------+
| Diagnostic  | Result                                         |
+=============+================================================+
|-----  Metadata  ----------+--------|
| DCGM Version | 3.3.5                                          |
| Denylist    | Pass                                           |
| Row Remap   | Fail                                           |
| Error       | GPU 5 has uncorrectable errors and pending re  |
|             | mappings                                       |
| PCIe        | Pass - GPUs: 0, 1                              |
|             | Fail - GPU: 2                                  |
| Warning     | GPU 2: a CUDA error                            |
| EUD Test    | Skip - All                                     |
| memory      | Fail                                           |
|             | GPU0: Pass                                     |
|             | GPU1: Fail                                     |
| Info: GPU1  | one double-bit                                 |
|             | error                                          |
| Power       | Warn - All                                     |
+-------------+------------------------------------------------+
`

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
		{diag, dcgm, []string{
			"dcgm-row-remap error dcgmi diag: the test Row Remap ends in Fail: Error: GPU 5 has uncorrectable errors and " +
				"pending remappings | ",
			"dcgm-pcie error dcgmi diag: the test PCIe ends in Fail: GPU: 2: Warning: GPU 2: a CUDA error | ",
			"dcgm-memory error dcgmi diag: the test memory ends in Fail: GPU1: Info: GPU1: one double-bit error | ",
			"dcgm-power warn dcgmi diag: the test Power ends in Warn: All | ",
		}},
		{strings.NewReplacer("Fail", "Pass", "Warn -", "Pass -").Replace(diag), dcgm, nil},
		{
			`[{"component":"a","states":[{"health":" UNHEALTHY"},{"health":"Broken"},{"health":""},{"health":"healthy "}]}]` + states,
			gpud,
			[]string{
				"gpud-a error gpud: a is UNHEALTHY | ", `gpud-a warn gpud: a is "Broken", a word that is not understood | `,
				`gpud-a warn gpud: a is "", a word that is not understood | `,
				"gpud-accelerator-a error gpud: accelerator-a is Unhealthy: xid 79 seen | GPU fell off the bus: REBOOT_SYSTEM, " +
					"HARDWARE_INSPECTION",
				"gpud-disk warn gpud: disk is Degraded: 91% full: e | ",
			},
		},
		{
			`[{"component":"a","states":[{"health":"Degraded","reason":"\u001b[31m\n!"}]}]`, gpud,
			[]string{"gpud-a warn gpud: a is Degraded: [31m ! | "},
		},
	} {
		list, err := tt.read("x.json", tt.text)
		var got []string
		for _, f := range list {
			if strings.HasPrefix(f.ID, "dcgm-") && strings.Contains(f.Fix, "dcgmi diag -r 3") {
				f.Fix = ""
			}
			got = append(got, fmt.Sprintf("%s %s %s | %s", f.ID, f.Severity, f.Text, f.Fix))
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
	for _, bad := range []string{"", "[", "{}", "[1]", `[{"component": 1}]`} {
		if _, err := gpud("x.json", bad); err == nil || !strings.Contains(err.Error(), "x.json: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	const row = `{"component":"a","states":[{"health":"Unhealthy"}]},`
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, broken := range []string{
		"[" + row, "[" + row + `{"component":"b","states":[{"health":"Unheal`, "[" + row + deep + deep + deep,
		"[" + row + "{}]}", "[" + row + "{}] tail", "[" + row + "{}][",
	} {
		if list, err := gpud("x.json", broken); err == nil || len(list) != 1 {
			t.Errorf("%.60q: %v, %v", broken, list, err)
		}
	}
	list, err := gpud("x.json", "["+strings.Repeat(row, maxFindings+2)+`{}]`)
	if err != nil || len(list) != maxFindings+1 || !strings.Contains(list[maxFindings].Text, "2 more results") {
		t.Errorf("a list without end: %d, %v", len(list), err)
	}
	if !MatchGpud([]byte(states)) || !MatchDCGM([]byte(diag)) || MatchDCGM([]byte(states)) {
		t.Error("taken for another")
	}
}

func gpud(name, text string) ([]finding.Finding, error) {
	return ReadGpud(name, strings.NewReader(text))
}

func dcgm(name, text string) ([]finding.Finding, error) {
	return ReadDCGM(name, strings.NewReader(text))
}

func fuzz(f *testing.F, read func(name, text string) ([]finding.Finding, error)) {
	f.Add(states)
	f.Add(diag)
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

func FuzzDCGM(f *testing.F) { fuzz(f, dcgm) }
