package browsertests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// text is the text of the first element that a selector names.
func (p *page) text(selector string) string {
	p.t.Helper()
	got, err := eval[string](p, `document.querySelector('`+selector+`')?.innerText ?? ''`)
	if err != nil {
		p.t.Fatal(selector, err)
	}
	return got
}

// TestFits asks about a job that does not fit: the page names a form that does, and its button asks about that.
func TestFits(t *testing.T) {
	p := start(t)
	p.open("/step?c=dgx-h100:8&m=llama3-70b&tp=1&pp=1&zero=0",
		`document.querySelector('.fits button') && document.querySelector('.cards[data-rested]')`)
	said := p.text(".fits")
	if !strings.Contains(said, "This fits") || strings.Contains(said, "--") || !strings.Contains(said, "GiB of 79") {
		t.Errorf("the page says %q; expected settings that fit, without flags", said)
	}
	p.shot("fits-not")
	p.mu.Lock() // on no number of nodes does it fit, which the server answers with 400
	p.faults = nil
	p.mu.Unlock()
	p.run(`document.querySelector('.fits button').click()`)
	p.wait(stepped + ` && document.querySelector('.figures').innerText.match(/fits\s+yes/)`)
	p.shot("fits")
	p.clean("a job that fits")
}

// TestFrameworkPrecision holds what the page shows as precision to what is computed, and Sequence parallel to
// tensor-parallel ranks.
func TestFrameworkPrecision(t *testing.T) {
	p := start(t)
	chosen := `[...document.querySelectorAll('.controls select')].find((x) => x.labels?.[0]?.textContent === 'Precision').selectedOptions[0].textContent`
	for path, want := range map[string]string{
		"/step?c=4x4090:2&m=gpt2-large&framework=ddp&nic=25GbE": "the framework's (amp-bf16)",
		"/plan?c=dgx-h100:1&m=gpt2-large":                       "the framework's",
	} {
		until := stepped
		if strings.HasPrefix(path, "/plan") {
			until = planned
		}
		p.open(path, until)
		if got, err := eval[string](p, chosen); err != nil || got != want {
			t.Errorf("%s shows precision %q, %v; expected %q", path, got, err, want)
		}
	}
	box := `[...document.querySelectorAll('.controls .check')].find((x) => x.textContent === 'Sequence parallel').firstChild`
	for tp, want := range map[string]bool{"1": false, "2": true} {
		p.open("/step?c=dgx-h100:1&m=llama3-8b&sp=1&tp="+tp, stepped)
		if on, err := eval[bool](p, box+`.checked`); err != nil || on != want {
			t.Errorf("tp=%s: Sequence parallel is ticked: %v, %v", tp, on, err)
		}
		if off, err := eval[bool](p, box+`.disabled`); err != nil || off == want {
			t.Errorf("tp=%s: Sequence parallel is disabled: %v, %v", tp, off, err)
		}
	}
	p.clean("precision")
}

// TestBothWrong opens addresses with a model and a cluster that do not exist: both are named.
func TestBothWrong(t *testing.T) {
	p := start(t)
	p.provoked(func() {
		for _, view := range []string{"step", "plan"} {
			p.open("/"+view+"?c=4x4909&m=lama3-8b", `document.querySelectorAll('.said .error').length === 2`)
			if said := p.text(".said"); !strings.Contains(said, "lama3-8b") || !strings.Contains(said, "4x4909") {
				t.Errorf("%s says %q; expected both names", view, said)
			}
			p.shot("wrong-" + view)
			p.open("/"+view+"?c=4x4909&m=llama3-8b", `document.querySelector('.said .error')`)
			if said := p.text(".said"); strings.Count(said, "4x4909: no such file") != 1 {
				t.Errorf("%s says %q; expected the cluster once", view, said)
			}
		}
	})
}

// TestExamineAgain uploads a file and then examines: the findings stay, each says where, and none says its title twice.
func TestExamineAgain(t *testing.T) {
	p := start(t)
	file := filepath.Join(t.TempDir(), "topo.txt")
	if err := os.WriteFile(file, []byte(cards), 0o666); err != nil {
		t.Fatal(err)
	}
	p.open("/doctor", `document.querySelector('.drop')`)
	p.provoked(func() { // it has no rings to draw, which the server answers with 400
		p.do(chromedp.SetUploadFiles(`.drop input[type=file]`, []string{file}))
		p.wait(`document.querySelector('.finding') && !document.querySelector('.busy')`)
		p.run(`document.querySelector('button[type=submit]').click()`)
		p.wait(`document.querySelector('.finding') && !document.querySelector('.busy')`)
	})
	if said := p.text(".controls .error"); said != "" {
		t.Errorf("Examine after an upload says %q", said)
	}
	twice, err := eval[string](p,
		`[...document.querySelectorAll('.finding')].filter((f) => f.innerText.split(f.querySelector('strong').innerText).length > 2).map((f) => f.innerText).join('\n')`)
	if err != nil || twice != "" {
		t.Errorf("findings that repeat their title (%v):\n%s", err, twice)
	}
	if said := p.text(".findings"); !strings.Contains(said, "Where: node0/") {
		t.Errorf("no finding says where:\n%s", said)
	}
	p.shot("doctor-again")
	p.clean("examined again")
	p.open("/doctor", `document.querySelector('.drop')`)
	p.run(`document.querySelector('button[type=submit]').click()`)
	p.wait(`document.querySelector('.controls .error')`)
}

// TestNarrowTimeline holds the timeline on a phone to what can be read there: its end in words, and no title that is
// cut.
func TestNarrowTimeline(t *testing.T) {
	p := start(t)
	p.do(chromedp.EmulateViewport(390, 844))
	p.open("/step?c=4x4090&m=llama3-8b&framework=hf&lora=rank=16&seq=2048",
		stepped+` && document.querySelector('.timeline img')?.complete`)
	if said := p.text(".card:has(.timeline) p"); !strings.Contains(said, "end of the step, after") ||
		!strings.Contains(said, "scrolls") {
		t.Errorf("beside the timeline stands %q", said)
	}
	top, err := eval[float64](p,
		`(() => { const i = document.querySelector('.timeline img').getBoundingClientRect(), c = document.querySelector('.timeline').getBoundingClientRect(); return (c.top - i.top) / i.width * 1200; })()`)
	if err != nil || top < 28 || top > 42 {
		t.Errorf("%.0f of the drawing's first 28 to 42 units, its title, are hidden (%v)", top, err)
	}
	p.run(`document.querySelector('.timeline').scrollIntoView()`)
	p.shot("timeline-phone")
	p.clean("timeline")
}

// TestOwnWords holds what the page shows to its own words: a part that the fleet does not have is said, and sources
// name no flags.
func TestOwnWords(t *testing.T) {
	p := start(t)
	p.open("/fleet?show=nothing", `document.querySelector('.fleet[data-shown=overview] .note')`)
	if said := p.text(".fleet .note"); !strings.Contains(said, "nothing") {
		t.Errorf("the fleet says %q of a part that it does not have", said)
	}
	p.shot("fleet-unknown")
	p.run(`[...document.querySelectorAll('.parts a')].find((a) => a.textContent === 'Nodes').click()`)
	p.wait(`document.querySelector('.fleet[data-shown=nodes]') && !document.querySelector('.fleet .note')`)
	p.open("/cluster?c=4x4090:2&nic=25GbE&at=node0&sel=node/node0", drawn)
	p.run(`document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
	if said := p.text("main"); strings.Contains(said, "--nic") || !strings.Contains(said, "nvidia-smi topo -m") {
		t.Errorf("the sources of a cluster are:\n%s", said)
	}
	p.clean("own words")
}
