package browsertests

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFleetKeys goes through the picture of pairs without a mouse.
func TestFleetKeys(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.slow = 2
	f.before(t, p)
	p.open("/fleet?show=pairs", part("pairs"))
	p.run(`document.querySelector('.heat').focus()`)
	says := func(text string) {
		t.Helper()
		p.wait(`document.querySelector('.readout').textContent.includes(` + "`" + text + "`" + `)`)
	}
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			p.run(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '` + k +
				`', bubbles: true, cancelable: true}))`)
		}
	}
	press("Home", "ArrowRight")
	says("gpu01 (leaf1) → gpu02 (leaf1): ")
	press("ArrowDown", "ArrowRight", "ArrowRight")
	says("gpu02 (leaf1) → gpu04 (leaf1): ")
	press("End")
	says("gpu02 (leaf1) → gpu08 (leaf2): not measured")
	press("n")
	says("gpu03 (leaf1) → ")
	p.shot("fleet-keys")
	press("Enter")
	p.
		wait(`location.search.includes('from=gpu03') && document.activeElement.textContent.startsWith('gpu03 → ') && document.querySelectorAll('.uplot').length === 2`)
	p.clean("keys")
	line, err := eval[string](p,
		`[...document.querySelectorAll('.share button')].find((b) => b.textContent === 'Command line').click(), document.querySelector('.share pre').textContent`)
	if err != nil || !strings.Contains(line, "/api/fleet/link?from=gpu03") {
		t.Errorf("command line: %q %v", line, err)
	}
}

// TestFleetOrder orders a measurement, watches it and cancels another; who may only read is told why not.
func TestFleetOrder(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.before(t, p)
	p.open("/fleet?show=orders", part("orders"))
	p.run(`document.querySelector('form button.main').click()`)
	p.wait(`document.querySelector('progress') && /\d+ of 28 pairs/.test(document.querySelector('.progress').textContent)`)
	p.shot("fleet-order-runs")
	p.
		wait(`document.body.textContent.includes('Past orders') && document.body.textContent.includes('28 pairs measured') && document.body.textContent.includes('Healthy: 7 nodes')`)
	p.shot("fleet-order-done")
	p.run(`document.querySelector('form button.main').click()`)
	p.wait(`document.querySelector('progress')`)
	p.run(`[...document.querySelectorAll('.cards button')].find((b) => b.textContent === 'Cancel').click()`)
	p.wait(`!document.querySelector('progress') && document.body.textContent.includes('by first')`)
	p.clean("orders")
	f.role = "read"
	p.open("/fleet?show=orders", part("orders"))
	p.
		wait(`document.querySelector('form fieldset').disabled && document.body.textContent.includes('You may look, not measure')`)
	p.shot("fleet-orders-reader")
	p.clean("a reader")
}

// agent lets a node of this machine join the server.
func (p *page) agent(name string) {
	p.t.Helper()
	dir := p.t.TempDir()
	if out, err := exec.Command(p.bin, "serve", "token", "node", name, "--data", p.data, "-o",
		dir+"/creds").CombinedOutput(); err != nil {
		p.t.Fatalf("credentials: %v\n%s", err, out)
	}
	_, port, _ := strings.Cut(freePort(p.t), ":")
	cmd := exec.Command(p.bin, "agent", "--join", "nats://"+p.bus, "--creds", dir+"/creds", "--name", name, "--data", dir,
		"--meet-port", port, "-q")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("agent %s: %s", name, said.String())
		}
	})
}

// TestFleetReal lets three agents of this machine join a real server and measures their pairs through the page.
func TestFleetReal(t *testing.T) {
	p := start(t)
	for _, n := range []string{"gpu1", "gpu2", "gpu3"} {
		p.agent(n)
	}
	p.open("/fleet?show=nodes", part("nodes"))
	p.
		wait(`['gpu1', 'gpu2', 'gpu3'].every((n) => [...document.querySelectorAll('table.nodes tr')].some((r) => r.textContent.startsWith(n + 'up')))`)
	p.shot("fleet-real-nodes")
	p.clean("real nodes")
	p.open("/fleet?show=orders&nodes=gpu[1-3]", part("orders"))
	past := func(n int) string {
		return fmt.Sprintf(`!document.querySelector('progress') && document.querySelectorAll('.past tbody tr').length === %d`,
			n)
	}
	for n := range 2 { // a history needs two
		p.run(`document.querySelector('form button.main').click()`)
		p.wait(past(n+1) + ` && document.querySelector('.past').textContent.includes('3 pairs measured')`)
	}
	p.
		run(`(() => { const s = document.querySelector('form select'); s.value = 'collective'; s.dispatchEvent(new Event('change', {bubbles: true})); document.querySelector('form button.main').click(); })()`)
	p.wait(past(3) + ` && document.querySelector('[aria-label="one order"]')?.textContent.includes('16 MiB')`)
	p.shot("fleet-real-order")
	p.clean("a real order")
	p.open("/fleet?show=pairs", part("pairs"))
	p.wait(`document.body.textContent.includes('6 of ')`)
	p.shot("fleet-real-pairs")
	p.open("/fleet?show=pairs&from=gpu1&to=gpu2", part("pairs"))
	p.wait(`document.querySelector('.uplot')`)
	p.shot("fleet-real-link")
	p.clean("real pairs")
}
