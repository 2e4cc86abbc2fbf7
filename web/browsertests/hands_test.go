package browsertests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestKeyboard walks through the picture and opens a node without a pointer.
func TestKeyboard(t *testing.T) {
	p := start(t)
	p.open("/cluster?c=dgx-h100:4", drawn)
	p.run(`document.querySelector('.topology .item[tabindex="0"]').focus()`)
	for range 4 {
		p.run(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))`)
	}
	at, err := eval[string](p, `document.activeElement.dataset.key || ''`)
	if err != nil || !strings.Contains(at, "node") {
		t.Fatalf("four times down leads to %q, %v", at, err)
	}
	p.do(chromedp.KeyEvent("\r"))
	p.wait(`document.querySelector('.side h2')?.textContent.startsWith('node')`)
	p.shot("keyboard")
	p.do(chromedp.KeyEvent("\r"))
	p.wait(`new URLSearchParams(location.search).get('at')?.startsWith('node')`)
	if in, err := eval[bool](p, `document.querySelector('.topology').contains(document.activeElement)`); err != nil ||
		!in {
		t.Errorf("the focus is lost when a node opens (%v)", err)
	}
	p.run(`history.back()`)
	p.wait(`!new URLSearchParams(location.search).get('at') && ` + drawn)
	// Everything can be reached by Tab, in the order in which it stands.
	p.open("/cluster?c=dgx-h100:4", drawn)
	var seen []string
	for range 26 {
		p.do(chromedp.KeyEvent("\t"))
		name, err := eval[string](p,
			`document.activeElement.tagName + ' ' + (document.activeElement.textContent.slice(0, 20) || document.activeElement.id)`)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, strings.TrimSpace(name))
	}
	if all := strings.Join(seen, " | "); !strings.Contains(all, "A Skip to the view | A busbar | A Cluster | A Predict "+
		"| A Step | A Plan | A Fleet | A Jobs | A Doctor") {
		t.Errorf("Tab goes through: %s", all)
	}
	t.Log(seen)
	p.clean("keyboard")
}

// TestSliders drags and measures how long answers take.
func TestSliders(t *testing.T) {
	p := start(t)
	p.open("/step?c=dgx-h100:8&m=llama3-70b&global-batch=1024", `document.querySelector('[data-rested]')`)
	var all []int
	for i := range 24 {
		at := []int{3, 5, 7, 9, 11, 4}[i%6]
		p.
			run(fmt.Sprintf(`(() => { const s = [...document.querySelectorAll('input[type=range]')].find((x) => x.labels[0].textContent.startsWith('%s')); delete document.querySelector('[data-answered]').dataset.answered; s.value = %d; s.dispatchEvent(new Event('input', {bubbles: true})); })()`, []string{"Nodes", "Network", "Micro"}[i/6%3], at%7))
		p.wait(`document.querySelector('.cards').dataset.answered`)
		text, err := eval[string](p, `document.querySelector('.cards').dataset.answered`)
		if err != nil {
			t.Fatal(err)
		}
		if ms, err := strconv.Atoi(text); err == nil {
			all = append(all, ms)
		}
		time.Sleep(30 * time.Millisecond)
	}
	slices.Sort(all)
	t.Logf("%d moves of sliders: half of the answers came within %d ms, the slowest after %d ms", len(all),
		all[len(all)/2], all[len(all)-1])
	p.run(`new Promise((done) => setTimeout(done, 500))`)
	p.mu.Lock() // moves that no job allows are refused, and said so
	p.faults = nil
	p.mu.Unlock()
}

// TestShare copies what is shown: an address, its JSON and its command line.
func TestShare(t *testing.T) {
	p := start(t)
	p.open("/predict?c=dgx-a100:2&algo=auto&op=all_gather", answered)
	p.run(`[...document.querySelectorAll('.share button')].find((b) => b.textContent === 'Command line').click()`)
	line, err := eval[string](p, `document.querySelector('.command').textContent`)
	if want := "busbar predict -c dgx-a100:2 --op all_gather --minbytes 1K --maxbytes 4G --stepfactor 4 --algo auto " +
		"--json"; err != nil || line != want {
		t.Errorf("command line %q, %v; expected %q", line, err, want)
	}
	p.shot("share")
	doc, err := eval[string](p,
		`fetch([...document.querySelectorAll('.share a')].find((a) => a.textContent === 'JSON').href).then((r) => r.json()).then((d) => d.op)`)
	if err != nil || doc != "all_gather" {
		t.Errorf("JSON: %q, %v", doc, err)
	}
	p.clean("share")
}

// TestUploads shows a topology and a measured sweep that people have.
func TestUploads(t *testing.T) {
	p := start(t)
	p.open("/cluster", drawn)
	p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, []string{example(t, "two-types.yaml")}))
	p.
		wait(`location.search.includes('@') && !document.querySelector('.busy') && document.querySelector('.crumbs')?.textContent.length > 0`)
	p.shot("cluster-upload")
	p.clean("upload")
	p.open("/predict?c=dgx-h100:2&algo=auto", answered)
	p.do(chromedp.SetUploadFiles(`.controls .group input[type=file]`,
		[]string{example(t, "allreduce.txt")}))
	p.
		wait(`location.search.includes('measured=') && !document.querySelector('.busy') && document.body.textContent.includes('Measured against predicted')`)
	p.shot("predict-measured")
	p.clean("measured")
}
