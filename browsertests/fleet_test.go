package browsertests

import (
	"fmt"
	"testing"
)

// part waits until a part of the fleet is whole.
func part(name string) string {
	return fmt.Sprintf(`document.querySelector('.view.fleet')?.dataset.shown === %q && !document.querySelector('.busy')`, name)
}

// TestFleetParts goes through every part over eight nodes, one of them slow.
func TestFleetParts(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	for _, c := range []struct{ name, path, until string }{
		{"fleet-overview", "/fleet", part("overview")},
		{"fleet-pairs", "/fleet?show=pairs", part("pairs")},
		{"fleet-peers", "/fleet?show=pairs&figure=peers", part("pairs")},
		{"fleet-latency", "/fleet?show=pairs&figure=latency", part("pairs")},
		{"fleet-link", "/fleet?show=pairs&from=gpu03&to=gpu01", part("pairs")},
		{"fleet-nodes", "/fleet?show=nodes", part("nodes")},
		{"fleet-node", "/fleet?show=nodes&node=gpu03", part("nodes")},
		{"fleet-findings", "/fleet?show=findings", part("findings")},
		{"fleet-orders", "/fleet?show=orders", part("orders")},
	} {
		p.open(c.path, c.until)
		p.shot(c.name)
		p.clean(c.name)
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
		t.Logf("a million pairs (%s): drawn in %s ms", figure, took)
		p.shot("fleet-1000-" + figure)
		p.clean("a thousand nodes")
	}
	p.open("/fleet?show=nodes", part("nodes"))
	p.shot("fleet-1000-nodes")
	p.clean("a thousand nodes")
}

// TestFleetAlone is what one machine shows before any other is there.
func TestFleetAlone(t *testing.T) {
	p := start(t)
	newFakeFleet(1, 4).before(t, p)
	p.open("/fleet", part("overview"))
	p.shot("fleet-alone")
	p.open("/fleet?show=pairs", part("pairs"))
	p.shot("fleet-alone-pairs")
	p.clean("one node")
}
