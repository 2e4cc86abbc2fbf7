package browsertests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// cards is what nvidia-smi topo -m prints on a workstation of four PCIe cards: it names no GPU.
const cards = "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\n" +
	"GPU0\t X \tNODE\tSYS\tSYS\tNODE\t0-31\t0\n" +
	"GPU1\tNODE\t X \tSYS\tSYS\tPHB\t0-31\t0\n" +
	"GPU2\tSYS\tSYS\t X \tNODE\tSYS\t32-63\t1\n" +
	"GPU3\tSYS\tSYS\tNODE\t X \tSYS\t32-63\t1\n" +
	"NIC0\tNODE\tPHB\tSYS\tSYS\t X \t\t\n\n" +
	"Legend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"

const (
	stepped = `document.querySelector('.figures') && document.querySelector('.cards[data-rested]:not([hidden])')`
	planned = `document.querySelector('#files details') && !document.querySelector('.busy')`
)

// pick chooses a value in the control of a label.
func (p *page) pick(label, value string) {
	p.t.Helper()
	p.
		run(`(() => { const c = [...document.querySelectorAll('.controls input, .controls select')].find((x) => x.labels?.[0]?.textContent === '` + label + `'); c.value = '` + value + `'; c.dispatchEvent(new Event('change', {bubbles: true})); })()`)
}

// provoked runs something whose refusals are meant.
func (p *page) provoked(what func()) {
	p.t.Helper()
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	what()
	p.clean("what was refused")
	p.mu.Lock()
	p.expected = false
	p.mu.Unlock()
}

// TestUnnamedGPUs uploads a topology that names no GPU: the page asks for it by its field, and answers once it is
// chosen.
func TestUnnamedGPUs(t *testing.T) {
	p := start(t)
	file := filepath.Join(t.TempDir(), "topo.txt")
	if err := os.WriteFile(file, []byte(cards), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct{ view, first, until string }{
		{"step", "/step?m=gpt2-large", stepped}, {"plan", "/plan?m=gpt2-large", planned}, {"predict", "/predict", answered},
	} {
		p.open(v.first, v.until)
		p.provoked(func() {
			p.do(chromedp.SetUploadFiles(`.controls details input[type=file]:not([accept])`, []string{file}))
			p.wait(`document.querySelector('.said .error')`)
		})
		said, err := eval[string](p, `document.querySelector('.said').innerText`)
		if err != nil || strings.Contains(said, "--") || !strings.Contains(said, "Choose the GPU model under Cluster") {
			t.Errorf("%s says %q, %v; expected that it leads to the GPU's field", v.view, said, err)
		}
		if old, err := eval[bool](p,
			`[...document.querySelectorAll('.cards')].some((c) => c.getClientRects().length > 0)`); err != nil || old {
			t.Errorf("%s still shows an answer about another cluster (%v)", v.view, err)
		}
		p.shot("unnamed-" + v.view)
		p.run(`document.querySelector('.said button').click()`)
		if at, err := eval[string](p, `document.activeElement.name`); err != nil || at != "gpu" {
			t.Errorf("%s: the button of the error leads to %q, %v", v.view, at, err)
		}
		p.pick("GPU model", "a6000")
		p.wait(`!document.querySelector('.said .error') && location.search.includes('gpu=a6000') && ` + v.until)
		p.shot("named-" + v.view)
		p.clean(v.view)
	}
	if href, err := eval[string](p,
		`[...document.querySelectorAll('nav a')].find((a) => a.textContent === 'Step').getAttribute('href')`); err != nil ||
		!strings.Contains(href, "gpu=a6000") {
		t.Errorf("the next view is %q, %v; expected the GPU to follow", href, err)
	}
	p.audit(axeCore(t), "a chosen GPU")
}

// TestWorkstation asks about four cards in a box, and about two such boxes: defaults fit, and what is missing is named.
func TestWorkstation(t *testing.T) {
	p := start(t)
	p.open("/step?m=gpt2-large", stepped)
	p.pick("Kind", "a6000")
	p.wait(`location.search.includes('c=1xa6000:1') && ` + stepped)
	p.pick("GPUs per node", "4")
	p.wait(`location.search.includes('c=4xa6000:1') && ` + stepped +
		` && document.querySelector('.view header p').textContent.includes('1x4')`)
	labels, err := eval[string](p, `[...document.querySelectorAll('.controls label')].map((x) => x.textContent).join('|')`)
	if err != nil || strings.Contains(labels, "NICs per node") || strings.Contains(labels, "Network, per NIC") ||
		!strings.Contains(labels, "Framework") {
		t.Errorf("a box without NICs has the fields %q, %v", labels, err)
	}
	p.shot("workstation")
	p.clean("workstation")
	for _, f := range []string{"ddp", "fsdp", "megatron", "deepspeed"} {
		p.pick("Framework", f)
		p.wait(`location.search.includes('framework=` + f + `') && ` + stepped)
	}
	p.clean("frameworks")
	p.provoked(func() {
		p.open("/step?m=gpt2-large&c=4xa6000:2", `document.querySelector('.said .error')`)
	})
	if said, err := eval[string](p, `document.querySelector('.said').innerText`); err != nil ||
		len(strings.Fields(said)) > 35 || !strings.Contains(said, "Enter the NICs under Cluster") {
		t.Errorf("two nodes without NICs: %q, %v", said, err)
	}
	p.shot("workstation-two")
	p.pick("NICs", "25GbE")
	p.wait(`location.search.includes('nic=25GbE') && ` + stepped)
	p.shot("workstation-two-joined")
	p.open("/plan?c=4xa6000:2&m=gpt2-large&framework=fsdp&nic=25GbE", planned)
	if text, err := eval[string](p, `document.querySelector('.cards').innerText`); err != nil ||
		!strings.Contains(text, "Framework: fsdp") {
		t.Errorf("the framework of the address is not taken, %v:\n%s", err, text)
	}
	p.clean("two workstations")
	p.provoked(func() {
		p.open("/step?c=4xa6000:1&m=gpt2-large&colour=red",
			`document.querySelector('.said .error')?.textContent.includes('colour')`)
		p.open("/cluster?c=4xa6000:1&colour=red", `document.querySelector('.note.wide')?.textContent.includes('colour')`)
	})
	p.audit(axeCore(t), "what the address should not say")
}
