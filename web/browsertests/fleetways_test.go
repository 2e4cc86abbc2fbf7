package browsertests

import (
	"strconv"
	"testing"
)

// TestFleetWays: pairs are shown by the transport that is chosen; where there are figures of TCP alone there is nothing
// to choose.
func TestFleetWays(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	const choice = `[...document.querySelectorAll('select')].find((s) => [...s.options].some((o) => o.textContent === 'RDMA'))`
	worst := func() float64 {
		t.Helper()
		text, err := eval[string](p, `document.querySelector('.heatside tbody td:last-child').textContent`)
		v, bad := strconv.ParseFloat(text, 64)
		if err != nil || bad != nil {
			t.Fatalf("%q %v %v", text, err, bad)
		}
		return v
	}
	p.open("/fleet?show=pairs", part("pairs"))
	if any, err := eval[bool](p, `!!(`+choice+`)`); err != nil || any {
		t.Errorf("a choice among TCP alone: %v", err)
	}
	f.ways = []string{"", "rdma", "nccl"}
	p.open("/fleet?show=pairs", part("pairs"))
	tcp := worst()
	for _, c := range []struct {
		by, name string
		times    float64
	}{{"rdma", "RDMA", 4}, {"nccl", "NCCL", 7}, {"", "TCP", 1}} {
		p.run(`{ const s = ` + choice + `; s.value = '` + c.by + `'; s.dispatchEvent(new Event('change')); }`)
		p.wait(`[...document.querySelectorAll('h2')].some((e) => e.textContent === 'Every pair, by ` + c.name +
			`') && (new URLSearchParams(location.search).get('by') || '') === '` + c.by +
			`' && !document.querySelector('.busy')`)
		if v := worst() / tcp; v < 0.9*c.times || v > 1.1*c.times {
			t.Errorf("by %s the worst pair has %.2f times that of TCP, want %.0f", c.name, v, c.times)
		}
		p.shot("fleet-by-" + c.name)
	}
	p.open("/fleet?show=pairs&by=rdma", part("pairs")) // the address keeps it
	p.wait(choice + `?.value === 'rdma'`)
	p.clean("transports")
}
