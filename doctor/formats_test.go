package doctor

import (
	"encoding/json"
	"encoding/xml"
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

func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := JUnit(&b, examine(t, sickJob)); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &s); err != nil {
		t.Fatal(err)
	}
	if s.Failures < 1 || s.Tests < s.Failures {
		t.Errorf("%+v\n%s", s, b.String())
	}
}

// A text in which nothing is wrong is told so, with the lines not understood.
func TestNothingWrong(t *testing.T) {
	var b strings.Builder
	r := examine(t, "n1:1:1 [0] NCCL INFO Using network IB\nn1:1:1 [0] NCCL INFO a line of a release to come\n")
	if err := (Text{}).Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "No problems found") || !strings.Contains(b.String(), "1 not understood") {
		t.Errorf("%s", b.String())
	}
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
