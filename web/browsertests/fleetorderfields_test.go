package browsertests

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// fill writes into the field with a label, as somebody who types and goes on.
func (p *page) fill(label, value string) {
	p.t.Helper()
	text, _ := json.Marshal(value)
	name, _ := json.Marshal(label)
	p.run(`(() => { const l = [...document.querySelectorAll('form label')].find((x) => x.textContent === ` + string(name) +
		`); const f = document.getElementById(l.htmlFor); f.value = ` + string(text) +
		`; f.dispatchEvent(new Event('input', {bubbles: true})); f.dispatchEvent(new Event('change', {bubbles: true})); })()`)
}

// TestFleetOrderFields fills in the form, and gives the same order by the command that the form shows.
func TestFleetOrderFields(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.before(t, p)
	for _, c := range []struct {
		measure string
		fields  [][2]string
		want    []string // of the command
	}{
		{"pairs", nil, []string{"order pairs --size 4M --small 8 --warmup 2 --iters 10 --max-time 20s"}},
		{"pairs", [][2]string{
			{"Nodes", "gpu[01-04]"},
			{"Large message, bytes", "1MB"},
			{"Small message, bytes", "64"},
			{"Repeat every", "1h"},
			{"Start", "02:30"},
			{"Rate limit", "40Gb/s"},
			{"Seconds per part", "7.5"},
			{"Refuse above", "200MB/s"},
			{"Rounds of a sweep", "3"},
			{"Pairs at once", "2"},
			{"Warm-up runs", "0"},
			{"Measured runs", "5"},
		}, []string{
			"--nodes 'gpu[01-04]'", "--at-once 2", "--busy 0.2GB/s", "--from 20", "--every 3600s", "--max-rate 5GB/s",
			"--max-time 7.5s", "--size 1000000", "--warmup 0",
		}},
		{"collective", [][2]string{
			{"Collective", "all_gather"},
			{"Algorithm", "ring"},
			{"Sizes, bytes", "64K, 1M"},
			{"Start", "2031-01-01T00:00:00Z"},
			{"Refuse above", "any"},
		}, []string{
			"order collective --op all_gather --algo ring --size 64K,1M", "--busy any", "--from 2031-01-01T00:00:00Z",
		}},
		{
			"check",
			[][2]string{{"Nodes", "gpu01,gpu02,gpu03"}, {"Job", "4711"}},
			[]string{"order check --nodes 'gpu[01-03]' --job 4711 --size 1M --rounds 3"},
		},
	} {
		p.open("/fleet?show=orders&measure="+c.measure, part("orders"))
		for _, x := range c.fields {
			p.fill(x[0], x[1])
		}
		line, err := eval[string](p, `document.querySelector('form pre.command').textContent`)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(line, w) {
				t.Errorf("%s: the command is %q; expected %q in it", c.measure, line, w)
			}
		}
		f.mu.Lock()
		before := len(f.orders)
		f.mu.Unlock()
		p.run(`document.querySelector('form button.main').click()`)
		p.wait(`document.querySelector('progress')`)
		cmd := exec.Command("bash", "-c", "timeout 10 "+strings.Replace(line, "busbar ", p.bin+" ", 1))
		cmd.Env = append(os.Environ(), "BUSBAR_TOKEN="+p.token)
		out, err := cmd.CombinedOutput()
		if err != nil && c.measure != "check" { // which judges
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		f.mu.Lock()
		if len(f.orders) < before+2 {
			t.Fatalf("%s: %d orders were given, expected 2\n%s", line, len(f.orders)-before, out)
		}
		page, typed := asked(t, f.orders[before]), asked(t, f.orders[before+1])
		f.mu.Unlock()
		if !reflect.DeepEqual(page, typed) {
			t.Errorf("%s:\nthe page ordered %v\nthe command      %v", line, page, typed)
		}
		p.run(`[...document.querySelectorAll('form details')].forEach((d) => { d.open = true; })`)
		p.shot("fleet-order-" + c.measure)
		p.audit(axeCore(t), "the form for "+c.measure)
	}
	p.clean("fields of orders")
}

// asked is an order without what a server adds to it.
func asked(t *testing.T, o doc) doc {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var d doc
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{
		"id", "by", "state", "why", "given", "heard", "sweep", "since", "parts", "parts_good", "parts_failed",
	} {
		delete(d, k)
	}
	return d
}

// TestFleetOrderWrong says beside a field what is wrong with it, and orders nothing.
func TestFleetOrderWrong(t *testing.T) {
	p := start(t)
	f := newFakeFleet(8, 4)
	f.before(t, p)
	p.open("/fleet?show=orders", part("orders"))
	wrong := [][3]string{
		{"Nodes", "gpu01", "two nodes at least"},
		{"Large message, bytes", "4X", "such as 4M"},
		{"Large message, bytes", "2G", "1 byte to 1 GiB"},
		{"Small message, bytes", "8M", "as much as the large message"},
		{"Repeat every", "1w", "something like 10m"},
		{"Start", "25:00", "expected 02:30"},
		{"Start", "tomorrow", "expected 02:30"},
		{"Rate limit", "5", "with its unit"},
		{"Seconds per part", "0", "seconds"},
		{"Refuse above", "50", "with its unit"},
		{"Pairs at once", "-1", "whole number"},
		{"Measured runs", "0", "whole number from 1"},
	}
	for _, c := range wrong {
		p.open("/fleet?show=orders", part("orders"))
		p.fill(c[0], c[1])
		p.run(`document.querySelector('form button.main').click()`)
		label, _ := json.Marshal(c[0])
		said, err := eval[string](p,
			`(() => { const l = [...document.querySelectorAll('form label')].find((x) => x.textContent === `+string(label)+
				`); const f = document.getElementById(l.htmlFor); return [f.getAttribute('aria-invalid'), document.activeElement === f, l.parentElement.querySelector('.wrong').textContent].join(' '); })()`)
		if err != nil || !strings.HasPrefix(said, "true true ") || !strings.Contains(said, c[2]) {
			t.Errorf("%s %q: %q, %v; expected it marked, in focus, and %q", c[0], c[1], said, err, c[2])
		}
	}
	p.shot("fleet-order-wrong")
	p.audit(axeCore(t), "a form with a mistake")
	if len(f.orders) != 0 {
		t.Errorf("%d orders were given", len(f.orders))
	}
	p.fill("Measured runs", "3")
	if still, err := eval[bool](p, `document.querySelector('[aria-invalid]') !== null`); err != nil || still {
		t.Errorf("what was mended is still marked (%v)", err)
	}
	p.clean("mistakes in orders")
}
