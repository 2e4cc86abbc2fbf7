package doctor

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const sickJob = "n1:1:1 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n" +
	"torch.distributed.DistBackendError: ncclSystemError: System call failed\n"

// The JSON has the fields that were promised.
func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := indented(&b, examine(t, sickJob)); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Findings []struct {
			ID, Severity, Title, Cause, Fix string
			Confidence                      float64
			Evidence                        []struct {
				File, Text string
				Line       int
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &d); err != nil {
		t.Fatal(err)
	}
	f := d.Findings[0]
	if f.ID != "shm-too-small" || f.Severity != "error" || f.Confidence < 0.5 || f.Title == "" || f.Cause == "" ||
		f.Fix == "" || f.Evidence[0].File != "a.log" || f.Evidence[0].Line != 1 {
		t.Errorf("%+v", f)
	}
	b.Reset()
	if err := indented(&b, examine(t, "hello\n")); err != nil ||
		!strings.Contains(b.String(), `"findings": []`) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// A text in which nothing is wrong is told so, with the lines not understood.
func TestNothingWrong(t *testing.T) {
	var b strings.Builder
	r := examine(t, "n1:1:1 [0] NCCL INFO Using network IB\nn1:1:1 [0] NCCL INFO a line of a release to come\n")
	if err := (Text{}).Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "No known fault") || !strings.Contains(b.String(), "1 not understood") {
		t.Errorf("%s", b.String())
	}
}

// An all-clear says what it is of, and what nobody told; a text without devices has none.
func TestJudged(t *testing.T) {
	const smi = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n"
	for _, tt := range []struct{ text, want string }{
		{smi, "No problems found. Judged: 1 node, 2 GPUs.\nNot judged, as no input says it: GPU models (nvidia-smi -L)"},
		{"n1:1:1 [0] NCCL INFO Using network IB\n", "No known fault is named in it. Nothing else was judged"},
		{"[Mar 02 2025 10:00:01] [ERROR] [tid 7] detected NVSwitch non-fatal error 12028 on fid 0\n", "SXid 12028"},
	} {
		var b strings.Builder
		if err := (Text{}).Write(&b, examine(t, tt.text)); err != nil || !strings.Contains(b.String(), tt.want) {
			t.Errorf("%q: %v\n%s\nwant %q", tt.text, err, b.String(), tt.want)
		}
	}
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
