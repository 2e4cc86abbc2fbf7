package browsertests

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// largeLog is a log of NCCL with so many lines of a program around it that it has a size.
func largeLog(t *testing.T, size int) string {
	t.Helper()
	head, err := os.ReadFile(example(t, "rings.log"))
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("step 1200 loss 2.31 grad norm 0.41 tokens 4194304 lr 3.0e-4 and nothing that anybody would look for\n")
	text := append(head, bytes.Repeat(line, (size-len(head))/len(line)+1)...)
	file := filepath.Join(t.TempDir(), "large.log")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDoctorLarge examines a log of many megabytes: findings and rings come as for any other.
func TestDoctorLarge(t *testing.T) {
	p := start(t)
	p.open("/doctor", `document.querySelector('.drop')`)
	p.do(chromedp.SetUploadFiles(`.drop input[type=file]`, []string{largeLog(t, 20<<20)}))
	p.
		wait(`document.querySelector('.findings, .cards .card p') && document.querySelector('.paper img')?.complete && document.querySelector('.paper img').naturalWidth > 100 && !document.querySelector('.busy')`)
	p.shot("doctor-large")
	p.run(`document.querySelector('.paper').scrollIntoView()`)
	p.shot("doctor-large-rings")
	p.clean("a large log")
	p.audit(axeCore(t), "a large log")
}

// TestDoctorTooLarge says what the server would not take before anything is sent.
func TestDoctorTooLarge(t *testing.T) {
	p := start(t)
	p.open("/doctor", `document.querySelector('.drop')`)
	file := filepath.Join(t.TempDir(), "huge.log")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(201 << 20); err != nil { // takes no room
		t.Fatal(err)
	}
	f.Close()
	p.do(chromedp.SetUploadFiles(`.drop input[type=file]`, []string{file}))
	p.
		wait(`document.querySelector('.error')?.textContent.includes('huge.log has 201 MiB; the server takes 200 MiB at once, and nothing was sent')`)
	sent, err := eval[int](p,
		`performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/doctor') || e.name.includes('/api/files')).length`)
	if err != nil || sent != 0 {
		t.Errorf("%d requests were sent (%v)", sent, err)
	}
	p.shot("doctor-too-large")
	p.open("/cluster", drawn)
	p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, []string{file}))
	p.
		wait(`document.querySelector('.error')?.textContent.includes('huge.log has 201 MiB; the server takes 200 MiB at once')`)
	p.clean("too large a log")
}
