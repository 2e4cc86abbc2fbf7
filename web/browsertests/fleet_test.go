package browsertests

import (
	"fmt"
	"os"
	"testing"
)

// part waits until a part of the fleet is whole.
func part(name string) string {
	return fmt.Sprintf(`document.querySelector('.view.fleet')?.dataset.shown === %q && !document.querySelector('.busy')`,
		name)
}

// fleetParts are what a fleet of eight nodes shows, one of them slow.
var fleetParts = []struct{ name, path, part string }{
	{"fleet-overview", "/fleet", "overview"},
	{"fleet-pairs", "/fleet?show=pairs", "pairs"},
	{"fleet-peers", "/fleet?show=pairs&figure=peers", "pairs"},
	{"fleet-latency", "/fleet?show=pairs&figure=latency", "pairs"},
	{"fleet-link", "/fleet?show=pairs&from=gpu03&to=gpu01", "pairs"},
	{"fleet-nodes", "/fleet?show=nodes", "nodes"},
	{"fleet-node", "/fleet?show=nodes&node=gpu03", "nodes"},
	{"fleet-findings", "/fleet?show=findings", "findings"},
	{"fleet-orders", "/fleet?show=orders", "orders"},
}

// TestFleetParts goes through every part, in light and in dark, and holds it against rules of accessibility.
func TestFleetParts(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	axe, err := os.ReadFile(*axeFile)
	if err != nil {
		t.Logf("without axe-core: %v; make browser fetches it", err)
	}
	p.open("/fleet", part("overview")) // a new address has settings of its own
	for _, theme := range []string{"light", "dark"} {
		p.run(`localStorage.setItem('theme', '` + theme + `')`)
		for _, c := range fleetParts {
			name := c.name + "-" + theme
			p.open(c.path, part(c.part))
			p.shot(name)
			if axe != nil {
				p.audit(string(axe), name)
			}
			p.clean(name)
		}
	}
}

// TestFleetMany draws a thousand nodes.
func TestFleetMany(t *testing.T) {
	p := start(t)
	f := newFakeFleet(1000, 32)
	f.slow = 411
	f.before(t, p)
	for _, figure := range []string{"rate", "peers"} {
		p.open("/fleet?show=pairs&figure="+figure, part("pairs"))
		took, err := eval[string](p, `document.querySelector('.heatbox').dataset.drawn`)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := eval[float64](p, `performance.now()`)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("a million pairs (%s): drawn in %s ms; %.0f ms since the page was asked for", figure, took, whole)
		p.shot("fleet-1000-" + figure)
		p.clean("a thousand nodes")
	}
	p.open("/fleet?show=nodes", part("nodes"))
	p.shot("fleet-1000-nodes")
	p.wait(`document.querySelectorAll('table.nodes tbody tr').length === 100`)
	p.run(`[...document.querySelectorAll('.pager button')].at(-1).click()`)
	p.wait(`document.querySelector('table.nodes tbody td').textContent === 'gpu101' && location.search.includes('page=2')`)
	p.open("/cluster?c=fleet&op=health", drawn)
	p.shot("cluster-fleet-1000")
	p.clean("a thousand nodes")
}

// TestFleetCluster colours the picture of the cluster by what was measured.
func TestFleetCluster(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	p.open("/cluster?c=fleet&op=health&sel=node/gpu03", drawn)
	p.
		wait(`document.querySelector('.side').textContent.includes('of its peers') && document.querySelector('.wire.load4') && document.querySelector('.wire.load0')`)
	p.shot("cluster-measured")
	p.clean("measured health")
}

// TestFleetAlone is what one machine shows before any other is there.
func TestFleetAlone(t *testing.T) {
	p := start(t)
	newFakeFleet(1, 4).before(t, p)
	p.open("/fleet", part("overview"))
	p.wait(`document.body.textContent.includes('busbar agent --join')`)
	p.shot("fleet-alone")
	p.open("/fleet?show=pairs", part("pairs"))
	p.shot("fleet-alone-pairs")
	p.clean("one node")
}
