package browsertests

import (
	"fmt"
	"testing"
)

const drawn = `document.querySelector('.stage[data-drawn]') && !document.querySelector('.busy')`

func TestCluster(t *testing.T) {
	p := start(t)
	for _, c := range []struct{ name, path string }{
		{"cluster-4", "/cluster"},
		{"cluster-this", "/cluster?c=this"},
		{"cluster-2-load", "/cluster?c=dgx-h100:2&op=all_reduce"},
		{"cluster-node", "/cluster?c=dgx-h100:2&op=all_reduce&at=node0"},
		{"cluster-baskerville", "/cluster?c=baskerville:46&op=all_reduce"},
		{"cluster-cube", "/cluster?c=dgx-1v:2&at=node0"},
		{"cluster-64", "/cluster?c=dgx-a100:64&op=all_reduce"},
		{"cluster-pod", "/cluster?c=dgx-a100:64&op=all_reduce&at=pod1"},
		{"cluster-1000", "/cluster?c=dgx-h100:1000&op=all_reduce"},
		{"cluster-nvl72", "/cluster?c=gb200-nvl72:4"},
		{"cluster-nvl72-rack", "/cluster?c=gb200-nvl72:4&op=all_reduce&at=node0"},
		{"cluster-16384", "/cluster?c=dgx-h100:16384&op=all_reduce"},
	} {
		p.open(c.path, drawn)
		took, err := eval[string](p, `document.querySelector('.stage').dataset.drawn`)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: drawn in %s ms", c.name, took)
		p.shot(c.name)
		p.clean(c.name)
	}
}

// TestHealth colours a fleet by what was measured.
func TestHealth(t *testing.T) {
	p := start(t)
	for _, n := range []int{8, 200} {
		f := newFakeFleet(n, 16)
		f.slow = 5
		f.before(t, p)
		p.open("/cluster?c=fleet&op=health", drawn)
		if bad, err := eval[int](p, `document.querySelectorAll('.item.node.tight').length`); err != nil || bad != 1 {
			t.Errorf("%d nodes: %d are shown as bad, %v; expected 1", n, bad, err)
		}
		p.run(`document.querySelector('.item.node.tight').dispatchEvent(new MouseEvent('click', {bubbles: true}))`)
		p.shot(fmt.Sprintf("cluster-health-%d", n))
		p.clean("health")
		p.audit(axeCore(t), "health")
	}
	// A load that nobody predicts is not passed over in silence.
	p.open("/cluster?c=fleet&op=all_reduce", drawn)
	p.wait(`document.querySelector('.said .note')?.textContent.includes('predicted for presets and files')`)
}
