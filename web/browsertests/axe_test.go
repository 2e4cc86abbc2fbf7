package browsertests

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// checked are the states of the page that are held against rules of accessibility, in light and in dark.
var checked = []struct{ name, path, until string }{
	{"home", "/", home},
	{"cluster", "/cluster?c=dgx-h100:4&op=all_reduce", drawn},
	{"cluster-1000", "/cluster?c=dgx-h100:1000", drawn},
	{"node", "/cluster?c=dgx-h100:2&op=all_reduce&at=node0&sel=device/node0/gpu0", drawn},
	{"predict", "/predict?c=dgx-h100:4", answered},
	{
		"step", "/step?c=dgx-h100:8&m=llama3-70b&tp=8&sp=1&pp=2&zero=1&global-batch=64",
		`document.querySelector('[data-rested]')`,
	},
	{"step-compare", "/step?c=4x4090:2&nic=25GbE&m=gpt2-large&l=1x4,2x2,2x4", stepped},
	{"predict-compare", "/predict?c=baskerville&l=1x4,2x2,4x1", answered},
	{"plan", "/plan?c=dgx-h100:8&m=llama3-70b", `document.querySelector('#files details')`},
	{"fleet", "/fleet", `document.querySelector('h1')`},
	{"jobs", "/jobs", `document.querySelector('.jobs[data-shown]')`},
	{"doctor", "/doctor", `document.querySelector('.drop')`},
}

// screens are a phone, a laptop and a wall.
var screens = []struct {
	name          string
	width, height int64
}{{"phone", 390, 844}, {"laptop", 1366, 768}, {"wall", 1920, 1080}}

// TestEveryView opens every view in both themes on every screen: it keeps a picture, runs axe-core and expects nothing
// wider than the screen.
func TestEveryView(t *testing.T) {
	axe := axeCore(t)
	p := start(t)
	for _, theme := range []string{"light", "dark"} {
		p.run(`localStorage.setItem('theme', '` + theme + `')`)
		for _, s := range screens {
			p.do(chromedp.EmulateViewport(s.width, s.height))
			for _, c := range checked {
				name := c.name + "-" + theme + "-" + s.name
				p.open(c.path, c.until)
				p.shot(name)
				p.audit(axe, name)
				wide, err := eval[bool](p, `document.documentElement.scrollWidth > innerWidth + 1`)
				if err != nil || wide {
					t.Errorf("%s: wider than the screen (%v)", name, err)
				}
			}
		}
	}
	p.clean("every view")
	p.run(`fetch('/logout', {method: 'POST'})`)
	p.open("/login", `document.querySelector('#token')`)
	p.shot("login")
	p.audit(axe, "login")
}

// axeCore is the script of axe-core.
func axeCore(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile(*axeFile)
	if err != nil {
		t.Skipf("%v; make browser fetches axe-core", err)
	}
	return string(axe)
}

// audit fails for what axe finds serious, and logs the rest.
func (p *page) audit(axe, what string) {
	p.t.Helper()
	p.run(axe + "; true")
	text, err := eval[string](p,
		`axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 4).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message || ''))}))))`)
	if err != nil {
		p.t.Fatalf("%s: axe: %v", what, err)
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range found {
		report := p.t.Logf
		if v.Impact == "serious" || v.Impact == "critical" {
			report = p.t.Errorf
		}
		report("%s: %s (%s): %s\n  %s", what, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n  "))
	}
}
