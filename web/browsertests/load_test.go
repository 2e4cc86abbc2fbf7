package browsertests

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// shared is four A100 as two nodes of two, each with one NIC for both of its GPUs.
const shared = `name: four
types:
  half:
    gpus: 2 x A100-SXM4-80GB
    nvlink: mesh
    nics: 1 x HDR infiniband
    sockets: 1
nodes:
  - hosts: node[0-1]
    type: half
network:
  kind: infiniband
`

// classes are those of the wire of a cable.
func (p *page) classes(key string) string {
	p.t.Helper()
	text, err := eval[string](p,
		`document.querySelector('.item[data-key="`+key+`"] .wire')?.getAttribute('class') || 'no such link'`)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// facts chooses a thing and gives what is said about it.
func (p *page) facts(key string) string {
	p.t.Helper()
	p.run(`document.querySelector('.item[data-key="` + key +
		`"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))`)
	text, err := eval[string](p, `document.querySelector('.side').innerText`)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// TestLoadShared shows where two nodes that share a NIC among two GPUs wait: at the NIC, to which host memory
// copies, while NVLink has nothing much to do.
func TestLoadShared(t *testing.T) {
	p := start(t)
	file := filepath.Join(t.TempDir(), "four.yaml")
	if err := os.WriteFile(file, []byte(shared), 0o666); err != nil {
		t.Fatal(err)
	}
	p.open("/cluster?op=all_reduce", drawn)
	p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, []string{file}))
	p.
		wait(`location.search.includes('@') && document.querySelector('.item[data-key="port/node1/0"] .wire.load') && !document.querySelector('.busy')`)
	for _, key := range []string{"port/node0/0", "port/node1/0"} {
		if c := p.classes(key); !strings.Contains(c, "load4") || !strings.Contains(c, "tight") {
			t.Errorf("%s is drawn as %q; expected the fullest step, marked as the bottleneck", key, c)
		}
	}
	said := p.facts("port/node0/0")
	for _, want := range []string{"GiB", "GB/s on average", "busy", "ms", "yes: the NIC cannot reach"} {
		if !strings.Contains(said, want) {
			t.Errorf("the facts of the NIC's cable do not say %q:\n%s", want, said)
		}
	}
	p.shot("load-shared")
	p.audit(axeCore(t), "load of links")
	p.open(p.path()+"&at=node0", drawn)
	nvlink, err := eval[string](p,
		`[...document.querySelectorAll('.item[data-key^="link/"]')].find((x) => x.getAttribute('aria-label').includes('NVLink'))?.dataset.key || ''`)
	if err != nil || nvlink == "" {
		t.Fatalf("no NVLink is drawn: %v", err)
	}
	if c := p.classes(nvlink); !strings.Contains(c, "load0") || strings.Contains(c, "tight") {
		t.Errorf("NVLink is drawn as %q; expected the calmest step", c)
	}
	if said := p.facts(nvlink); !strings.Contains(said, "no, that is node") || !strings.Contains(said, "gpu0 → gpu1") {
		t.Errorf("the facts of NVLink:\n%s", said)
	}
	p.shot("load-shared-node")
	p.clean("load of links")
}

// path is where the page is.
func (p *page) path() string {
	p.t.Helper()
	at, err := eval[string](p, `location.pathname + location.search`)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

// TestLoadEach shows links of one kind that are not alike: nodes that take no part, and the end of a chain.
func TestLoadEach(t *testing.T) {
	p := start(t)
	p.open("/cluster?c=dgx-h100:4&op=all_reduce&l=2x8", drawn)
	if c := p.classes("port/node1/3"); !strings.Contains(c, "load ") {
		t.Errorf("a cable of a node that takes part is drawn as %q", c)
	}
	if c := p.classes("port/node2/3"); strings.Contains(c, "load") {
		t.Errorf("a cable of a node that takes no part is drawn as %q", c)
	}
	if said := p.facts("port/node2/3"); !strings.Contains(said, "carries nothing of it") {
		t.Errorf("the facts of a cable of a node that takes no part:\n%s", said)
	}
	p.shot("load-each")
	p.open("/cluster?c=dgx-h100:4&op=broadcast", drawn)
	said := p.facts("node/node0")
	for _, want := range []string{"most loaded link", "and", "like it", "bottleneck"} {
		if !strings.Contains(said, want) {
			t.Errorf("the facts of a node do not say %q:\n%s", want, said)
		}
	}
	p.shot("load-node")
	// A group that is folded shows its most loaded link, and says so.
	p.open("/cluster?c=dgx-h100:4096&op=all_reduce", drawn)
	folded, err := eval[string](p, `[...document.querySelectorAll('.item.pod.load')][0]?.getAttribute('aria-label') || ''`)
	if err != nil || !strings.Contains(folded, "most loaded: ") {
		t.Errorf("a folded group says %q, %v", folded, err)
	}
	p.shot("load-folded")
	// Where links are too many to be told apart, that is said.
	p.open("/cluster?c=dgx-h100:16384&op=all_reduce", drawn)
	p.wait(`document.querySelector('.legend').textContent.includes('busiest link of its kind')`)
	p.clean("load of each link")
}

// TestLoadSpeed tells how long a thousand nodes take, from the question to the picture.
func TestLoadSpeed(t *testing.T) {
	p := start(t)
	for _, op := range []string{"all_reduce", "all_to_all"} {
		for _, size := range []string{"1G", "2G"} {
			p.open("/cluster?c=dgx-h100:1000&size="+size+"&op="+op, drawn)
			took, err := eval[string](p, `document.querySelector('.stage').dataset.drawn`)
			if err != nil {
				t.Fatal(err)
			}
			asked, err := eval[string](p,
				`JSON.stringify(performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/predict')).map((e) => [Math.round(e.duration), e.transferSize]))`)
			if err != nil {
				t.Fatal(err)
			}
			ms, _ := strconv.Atoi(took)
			t.Logf("%s of %s on 1,000 nodes: answered in [ms, bytes] %s, drawn in %d ms", op, size, asked, ms)
		}
	}
}
