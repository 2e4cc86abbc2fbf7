package browsertests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestHostileNames uploads a cluster whose names are markup, very long, emoji and written from right to left: they are
// shown as text, and break neither the page nor its width.
func TestHostileNames(t *testing.T) {
	p := start(t)
	long := strings.Repeat("n", 60)
	name := `<script>window.hit=1</script><img src=x onerror=window.hit=2>` + strings.Repeat("x", 300) + "😀‮evil"
	file := filepath.Join(t.TempDir(), "site.yaml")
	text := "name: '" + name + "'\nnodes:\n  - hosts: " + long + "[1-2]\n    type: dgx-h100\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, w := range []int64{390, 1366} {
		p.do(chromedp.EmulateViewport(w, 844))
		p.open("/cluster", drawn)
		p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, []string{file}))
		p.
			wait(`location.search.includes('@') && !document.querySelector('.busy') && document.querySelector('.crumbs')?.textContent.includes('<script>')`)
		p.shot("hostile")
		for _, view := range []string{"/cluster", "/predict", "/step", "/plan"} {
			p.run(`[...document.querySelectorAll('#nav a')].find((a) => a.pathname === '` + view + `').click()`)
			p.
				wait(`document.querySelector('h1') && !document.querySelector('.busy') && document.body.textContent.includes('<script>')`)
			if wide, err := eval[bool](p, `document.documentElement.scrollWidth > innerWidth + 1`); err != nil || wide {
				t.Errorf("%s: wider than the screen, %v", view, err)
			}
		}
	}
	if hit, err := eval[bool](p,
		`window.hit !== undefined || document.querySelector('img[src="x"]') !== null`); err != nil || hit {
		t.Errorf("markup of a name became part of the page (%v)", err)
	}
	p.clean("hostile names")
}

// TestBackAndAway goes back and forth between views, loads one again while it computes, and loses the server.
func TestBackAndAway(t *testing.T) {
	p := start(t)
	p.open("/predict?c=dgx-h100:4", answered)
	p.run(`[...document.querySelectorAll('#nav a')].find((a) => a.pathname === '/step').click()`)
	p.wait(`location.pathname === '/step' && document.querySelector('[data-rested]')`)
	p.run(`history.back()`)
	p.wait(`location.pathname === '/predict' && document.querySelector('h1')?.textContent === 'Predict'`)
	p.wait(answered)
	p.run(`history.forward()`)
	p.wait(`location.pathname === '/step' && document.querySelector('[data-rested]')`)
	p.do(chromedp.Navigate(p.url + "/plan?c=dgx-h100:64&m=llama3-70b"))
	p.do(chromedp.Navigate(p.url + "/plan?c=dgx-h100:8&m=llama3-70b")) // in the middle of the first answer
	p.wait(`document.querySelector('#files details')`)
	p.clean("back and reload")
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	p.run(`window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))`)
	p.
		run(`(() => { const i = [...document.querySelectorAll('.controls input')].find((x) => x.inputMode === 'numeric'); i.value = '256'; i.dispatchEvent(new Event('change', {bubbles: true})); })()`)
	p.wait(`document.querySelector('.error')?.textContent.includes('server')`)
	p.shot("offline")
}
