package browsertests

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestStep(t *testing.T) {
	p := start(t)
	p.open("/step?c=dgx-h100:8&m=llama3-70b&tp=8&sp=1&pp=2&zero=1&global-batch=64",
		`document.querySelector('[data-rested]') && document.querySelector('.paper img')?.complete`)
	p.shot("step")
	p.run(`window.scrollTo(0, 560)`)
	p.shot("step-below")
	p.clean("step")
}

func TestPlan(t *testing.T) {
	p := start(t)
	p.open("/plan?c=dgx-h100:8&m=llama3-70b", `document.querySelector('#files details')`)
	p.shot("plan")
	p.run(`document.querySelector('#files').scrollIntoView()`)
	p.shot("plan-files")
	p.clean("plan")
}

func TestDoctor(t *testing.T) {
	p := start(t)
	p.open("/doctor", `document.querySelector('.drop')`)
	p.shot("doctor-empty")
	logs := []string{example(t, "rings.log"), example(t, "job.log")}
	p.do(chromedp.SetUploadFiles(`.drop input[type=file]`, logs))
	p.wait(`document.querySelector('.finding') && document.querySelector('.paper img')?.complete`)
	p.shot("doctor")
	p.run(`document.querySelector('.paper').scrollIntoView()`)
	p.shot("doctor-rings")
	p.clean("doctor")
	p.audit(axeCore(t), "doctor with findings")
	p.open("/doctor", `document.querySelector('.drop')`)
	p.
		run(`document.querySelector('textarea').value = 'training hangs'; document.querySelector('button[type=submit]').click()`)
	p.
		wait(`document.querySelector('h2')?.textContent === 'Questions that would decide' && document.querySelector('pre.command')`)
	p.shot("doctor-undecided")
	p.audit(axeCore(t), "doctor undecided")
}

func TestFleet(t *testing.T) {
	p := start(t)
	p.open("/fleet", `document.querySelector('h1')?.textContent === 'Fleet'`)
	p.shot("fleet")
	p.clean("fleet")
}

// example is the path of a file of the documents.
func example(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs("../../docs/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
