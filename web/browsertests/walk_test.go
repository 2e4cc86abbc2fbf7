package browsertests

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// walked are states of all views, with what people open on them.
var walked = []struct{ name, path, until, open string }{
	{"home", "/", home, ""},
	{"cluster", "/cluster?c=dgx-h100:4&op=all_reduce", drawn, ""},
	{"cluster-link", "/cluster?c=baskerville:2&l=2x2&op=all_reduce&sel=port/node0/0", drawn, ""},
	{"cluster-1000", "/cluster?c=dgx-h100:1000&op=all_reduce", drawn, ""},
	{"node", "/cluster?c=dgx-h100:2&op=all_reduce&at=node0&sel=device/node0/gpu0", drawn, ""},
	{"predict", "/predict?c=dgx-h100:4", answered, ""},
	{"predict-compare", "/predict?c=baskerville&layouts=1x4,2x2,4x1", answered, ""},
	{"step-compare", "/step?c=4x4090:2&nic=25GbE&m=gpt2-large&l=1x4,2x2,2x4", stepped, ""},
	{
		"step", "/step?c=dgx-h100:8&m=llama3-70b&tp=8&sp=1&pp=2&zero=1&global-batch=64",
		`document.querySelector('[data-rested]')`, "",
	},
	{"plan", "/plan?c=dgx-h100:8&m=llama3-70b", `document.querySelector('#files details')`, ""},
	{"doctor", "/doctor", `document.querySelector('.drop')`, ""},
	{"fleet", "/fleet", part("overview"), "fleet"},
	{"fleet-pairs", "/fleet?show=pairs", part("pairs"), "fleet"},
	{"fleet-link", "/fleet?show=pairs&from=gpu03&to=gpu01", part("pairs"), "fleet"},
	{"fleet-nodes", "/fleet?show=nodes&node=gpu03", part("nodes"), "fleet"},
	{"fleet-findings", "/fleet?show=findings", part("findings"), "fleet"},
	{"fleet-orders", "/fleet?show=orders", part("orders"), "fleet"},
}

// faults looks for what a newcomer would stumble over: controls that something else covers or that have no name, words
// that are cut off, pictures whose words do not fit their boxes.
const faults = `(() => {
  const out = [];
  const seen = (e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 && getComputedStyle(e).visibility !== 'hidden' && !e.closest('.unseen, [hidden], .skip'); };
  const what = (e) => (e.tagName + ' ' + (e.getAttribute('aria-label') || e.textContent || e.id || '').trim()).slice(0, 70);
  for (const e of document.querySelectorAll('button, a[href], input, select, textarea, summary, [tabindex="0"]')) {
    if (!seen(e) || e.closest('svg')) continue;
    e.scrollIntoView({block: 'nearest'});
    const r = e.getBoundingClientRect();
    const x = Math.min(Math.max(r.left + r.width / 2, 0), innerWidth - 1), y = Math.min(Math.max(r.top + Math.min(r.height / 2, 20), 0), innerHeight - 1);
    const top = document.elementFromPoint(x, y);
    if (top && !e.contains(top) && !top.contains(e) && !(e.disabled || e.closest('fieldset:disabled'))) out.push('covered by ' + what(top) + ': ' + what(e));
    if (r.left < -1 || r.right > innerWidth + 1) out.push('beyond the edge: ' + what(e));
    const name = e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.[0]?.textContent || e.textContent || e.title;
    if (!name?.trim()) out.push('no name: ' + e.outerHTML.slice(0, 90));
    if (e.tagName === 'A' && (e.getAttribute('href') === '#' || !e.getAttribute('href'))) out.push('leads nowhere: ' + what(e));
    if (e.placeholder && e.clientWidth && e.tagName === 'INPUT') {
      const c = document.createElement('canvas').getContext('2d');
      const style = getComputedStyle(e);
      c.font = style.font;
      if (c.measureText(e.placeholder).width > e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) + 1) out.push('a placeholder is cut off: ' + e.placeholder);
    }
  }
  for (const e of document.querySelectorAll('h1, h2, h3, p, dt, dd, li, th, td, label, legend, button, summary, small, .tag, caption')) {
    if (!seen(e) || e.closest('svg, .scroll')) continue;
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth && getComputedStyle(e).display !== 'inline') out.push('cut off or wider than its place: ' + what(e));
  }
  for (const g of document.querySelectorAll('svg.topology .item')) {
    const box = g.querySelector('rect');
    const text = g.querySelector('text');
    if (!box || !text?.textContent || g.classList.contains('pod')) continue;
    if (text.getBBox().width > box.getBBox().width + 1) out.push('words wider than their box: ' + text.textContent);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) out.push('the page is wider than the screen');
  return [...new Set(out)].slice(0, 12).join('\n');
})()`

// TestWalk goes through every view as somebody new would, on a small screen and on a wall, and by keys alone.
func TestWalk(t *testing.T) {
	p := start(t)
	real := p.url
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	fake := p.url
	for _, s := range []struct {
		name string
		w, h int64
	}{{"phone", 390, 844}, {"small", 1366, 768}, {"wall", 3840, 2160}} {
		p.do(chromedp.EmulateViewport(s.w, s.h))
		for _, c := range walked {
			if p.url = real; c.open == "fleet" {
				p.url = fake
			}
			p.open(c.path, c.until)
			p.shot("walk-" + c.name + "-" + s.name)
			p.run(`[...document.querySelectorAll('main details')].forEach((d) => { d.open = true; })`)
			said, err := eval[string](p, faults)
			if err != nil {
				t.Fatal(c.name, err)
			}
			if said != "" {
				t.Errorf("%s, %s:\n  %s", c.name, s.name, strings.ReplaceAll(said, "\n", "\n  "))
			}
			p.clean(c.name)
		}
	}
}

// TestWalkByKeys reaches every control of every view by Tab, and sees where the focus is.
func TestWalkByKeys(t *testing.T) {
	p := start(t)
	real := p.url
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	fake := p.url
	for _, c := range walked {
		if p.url = real; c.open == "fleet" {
			p.url = fake
		}
		p.open(c.path, c.until)
		p.run(`window.reached = new Set(); window.hidden = []; document.activeElement?.blur?.(); window.scrollTo(0, 0)`)
		for range 140 {
			p.do(chromedp.KeyEvent("\t"))
			end, err := eval[bool](p,
				`(() => { const e = document.activeElement; if (!e || e === document.body || reached.has(e)) return true; reached.add(e); if (e.closest('svg, .skip')) return false;
				const r = e.getBoundingClientRect(), x = Math.min(Math.max(r.left + r.width / 2, 1), innerWidth - 2), y = Math.min(Math.max(r.top + Math.min(r.height / 2, 16), 1), innerHeight - 2), top = document.elementFromPoint(x, y);
				if (r.bottom < 0 || r.top > innerHeight || (top && !e.contains(top) && !top.contains(e))) hidden.push((e.tagName + ' ' + (e.getAttribute('aria-label') || e.textContent || e.id)).slice(0, 60));
				return false; })()`)
			if err != nil {
				t.Fatal(err)
			}
			if end {
				break
			}
		}
		said, err := eval[string](p,
			`(() => { const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter((e) => !e.disabled && !e.closest('fieldset:disabled, [hidden], svg, details:not([open]) > :not(summary)') && e.getClientRects().length && e.tabIndex >= 0 && e.type !== 'radio');
			return [...all.filter((e) => !reached.has(e)).slice(0, 5).map((e) => 'not reached: ' + e.outerHTML.slice(0, 90)), ...hidden.slice(0, 5).map((x) => 'the focus is out of sight: ' + x)].join('\n'); })()`)
		if err != nil {
			t.Fatal(err)
		}
		if said != "" {
			t.Errorf("%s:\n  %s", c.name, strings.ReplaceAll(said, "\n", "\n  "))
		}
	}
	p.clean("keys")
}
