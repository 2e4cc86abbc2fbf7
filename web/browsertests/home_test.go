package browsertests

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// is evaluates an expression that should be true.
func (p *page) is(what, expr string) {
	p.t.Helper()
	if ok, err := eval[bool](p, "Boolean("+expr+")"); err != nil || !ok {
		p.t.Errorf("%s: not so (%v)", what, err)
	}
}

// TestHome asks the two questions that the page opens with: about a job, and with the example about a log.
func TestHome(t *testing.T) {
	p := start(t)
	p.shot("home")
	p.pick("Name", "gpt2-large")
	p.pick("Kind", "dgx-a100")
	p.run(`[...document.querySelectorAll('.home button')].find((b) => b.textContent === 'Show how fast').click()`)
	p.wait(`location.pathname === '/step' && ` + stepped)
	if at := p.path(); !strings.Contains(at, "m=gpt2-large") || !strings.Contains(at, "c=dgx-a100") {
		t.Errorf("home leads to %s; expected what was chosen", at)
	}
	p.clean("a job")
	p.run(`document.querySelector('.brand').click()`)
	p.wait(home)
	p.provoked(func() { // the example has no rings to draw
		p.run(`[...document.querySelectorAll('.drop button')].find((b) => b.textContent === 'Try an example log').click()`)
		p.wait(`location.pathname === '/doctor' && document.querySelector('.finding') && !document.querySelector('.busy')`)
	})
	p.is("a setting of the fix can be copied",
		`[...document.querySelectorAll('.steps button')].some((b) => b.textContent.startsWith('Copy NCCL_'))`)
	p.shot("home-example")
}

// TestFieldErrors enters what the server refuses: the field says so, and no longer once it is mended.
func TestFieldErrors(t *testing.T) {
	p := start(t)
	for path, c := range map[string]struct{ until, label, name, bad, good string }{
		"/step?c=dgx-h100:2&m=gpt2-large":       {stepped, "NICs", "nic", "fast", "100GbE"},
		"/plan?c=dgx-h100:2&m=gpt2-large&top=3": {planned, "Parallel degrees", "parallel", "tp=3", "tp=2"},
		"/predict?c=dgx-h100:2":                 {answered, "Layouts", "l", "9x9", "2x4"},
	} {
		p.open(path, c.until)
		p.provoked(func() {
			p.pick(c.label, c.bad)
			p.wait(`document.querySelector('.said .error') && document.querySelector('[name="` + c.name +
				`"][aria-invalid] + .wrong')`)
		})
		p.shot("field-" + c.name)
		p.pick(c.label, c.good)
		p.wait(`!document.querySelector('.said .error, .controls .wrong, .controls [aria-invalid]') && ` + c.until)
		p.clean(path)
	}
}

// TestSideBySide compares layouts: bars have the lengths of their times.
func TestSideBySide(t *testing.T) {
	p := start(t)
	for path, until := range map[string]string{
		"/predict?c=baskerville&l=1x4,2x2,4x1":                      answered,
		"/step?c=4x4090:2&nic=25GbE&m=gpt2-large&l=1x4,2x2,2x4":     stepped,
		"/predict?c=baskerville&layouts=1x4,2x2,4x1&algo=auto&b=1M": answered,
	} {
		p.open(path, until)
		said, err := eval[string](p, `(() => {
			const units = { 'µs': 1, ms: 1e3, s: 1e6 };
			const list = [...document.querySelectorAll('.side-by-side li > p:first-child')].map((x) => {
				const [, n, unit] = / ([\d.,]+) (µs|ms|s) /.exec(x.innerText);
				return [Number(n.replaceAll(',', '')) * units[unit], x.nextSibling.getBoundingClientRect().width];
			});
			const [time, width] = list.reduce((a, b) => (b[0] > a[0] ? b : a));
			return list.length !== 3 ? list.length + ' bars' : list.filter(([t, w]) => t / time > 0.02 && Math.abs(w / width - t / time) > 0.02).join(' ');
		})()`)
		if err != nil || said != "" {
			t.Errorf("%s: %s, %v", path, said, err)
		}
		p.shot("side-by-side")
		p.clean(path)
	}
}

// TestSeveralFiles uploads the topology of two nodes at once: the cluster has both, and says what could not be checked.
func TestSeveralFiles(t *testing.T) {
	p := start(t)
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"gpu1.txt", "gpu2.txt"} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(cards), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.open("/cluster", drawn)
	p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, files))
	p.
		wait(`location.search.includes('@') && document.querySelector('.view header p').textContent.startsWith('2 nodes') && ` + drawn)
	if said := p.text(".stage"); !strings.Contains(said, "Not checked, as no source says it") {
		t.Errorf("the audit does not say what was not checked:\n%s", said)
	}
	p.shot("several-files")
	p.clean("several files")
	// The same as a folder of the nodes' folders, dropped.
	folder := filepath.Join(t.TempDir(), "site")
	for _, name := range []string{"gpu1", "gpu2"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "topo.txt"), []byte(cards), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p.open("/cluster", drawn)
	p.drop(`.controls fieldset`, folder)
	p.
		wait(`location.search.includes('@') && document.querySelector('.view header p').textContent.startsWith('2 nodes') && ` + drawn)
	p.clean("a dropped folder")
}

// drop drags files or folders onto an element, as from a desktop.
func (p *page) drop(selector string, files ...string) {
	p.t.Helper()
	at, err := eval[[]float64](p, `(() => { const r = document.querySelector('`+selector+
		`').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 30]; })()`)
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, kind := range []input.DispatchDragEventType{
			input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop,
		} {
			if _, err := cdp.Call(ctx, target, input.DispatchDragEvent, input.DispatchDragEventParams{
				Type: kind, X: at[0], Y: at[1],
				Data: &input.DragData{Items: []*input.DragDataItem{}, Files: files, DragOperationsMask: 1},
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestPhone holds a phone to the form first, and to tables that scroll in their own box.
func TestPhone(t *testing.T) {
	p := start(t)
	p.do(chromedp.EmulateViewport(390, 844))
	for path, until := range map[string]string{
		"/step?c=dgx-h100:8&m=llama3-70b&global-batch=64": stepped, "/plan?c=dgx-h100:2&m=gpt2-large": planned,
		"/predict?c=dgx-h100:2": answered, "/cluster?c=dgx-h100:2": drawn, "/doctor": `document.querySelector('.drop')`,
	} {
		p.open(path, until)
		p.is(path+": the form comes first",
			`document.querySelector('.controls').getBoundingClientRect().bottom <= document.querySelector('.controls ~ section').getBoundingClientRect().top`)
		p.run(`[...document.querySelectorAll('main details')].forEach((d) => { d.open = true; })`)
		p.is(path+": nothing is wider than the screen", `document.documentElement.scrollWidth <= innerWidth + 1`)
		p.is(path+": tables scroll in a box of their own",
			`[...document.querySelectorAll('main table')].every((x) => x.closest('.scroll, .curve'))`)
		p.clean(path)
	}
}

// TestSearching sees that a search is shown where its answer will be.
func TestSearching(t *testing.T) {
	p := start(t)
	p.open("/plan?c=dgx-h100:2&m=gpt2-large", planned)
	p.is("progress stands in place of the answer", `(() => {
		const c = document.querySelector('.controls [name=top]');
		c.value = '3';
		c.dispatchEvent(new Event('change', {bubbles: true}));
		return document.querySelector('.view > .cards progress') && !document.querySelector('#files'); })()`)
	p.
		wait(planned + ` && !document.querySelector('.view > .cards progress') && document.querySelectorAll('.cards tbody tr').length === 3`)
	p.clean("a search")
}
