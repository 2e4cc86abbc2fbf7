package browsertests

import (
	"encoding/json"
	"testing"
)

// module evaluates an expression over m, a module of the page.
func module[T any](p *page, name, expr string) T {
	p.t.Helper()
	text, err := eval[string](p, `import(document.querySelector('script[type=module]').src.replace('main.js', '`+name+
		`')).then((m) => JSON.stringify(`+expr+`))`)
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		p.t.Fatalf("%s: %v: %s", expr, err, text)
	}
	return v
}

// TestFleetWords holds what the page says about nodes: hostlists, lines for Slurm, sizes and times.
func TestFleetWords(t *testing.T) {
	p := start(t)
	for _, c := range []struct{ module, expr, want string }{
		{"fleethosts.js", `m.fold(['gpu2', 'gpu10', 'gpu1', 'head', 'gpu3'])`, "gpu[1-3,10],head"},
		{"fleethosts.js", `m.fold(['n08', 'n09', 'n10', 'n7'])`, "n7,n[08-10]"},
		{"fleethosts.js", `m.fold([])`, ""},
		{"fleethosts.js", `m.fold(['a1', 'a1'])`, "a1"},
		{
			"fleethosts.js", "m.drain(['gpu1', 'gpu2'], 'slow \"out\" $(id) `id`')",
			`scontrol update nodename=gpu[1-2] state=drain reason="busbar: slow out (id) id"`,
		},
		{"fleetordertext.js", `[m.size('4M'), m.size('64KiB'), m.size('8'), m.size('1.5k')].join()`, "4194304,65536,8,1536"},
		{
			"fleetordertext.js", `[m.size('4X'), m.size(''), m.size('-1'), m.span('1w'), m.span('h')].join()`,
			"NaN,NaN,NaN,NaN,NaN",
		},
		{
			"fleetordertext.js", `[m.span(''), m.span('once'), m.span('10m'), m.span('1 h'), m.span('1d')].join()`,
			"0,0,600,3600,86400",
		},
	} {
		if got := module[string](p, c.module, c.expr); got != c.want {
			t.Errorf("%s = %q, want %q", c.expr, got, c.want)
		}
	}
	// Every folded list spells out again.
	p.
		run(`import(document.querySelector('script[type=module]').src.replace('main.js', 'fleethosts.js')).then((m) => { window.fold = m.fold; })`)
	if n := module[int](p, "units.js",
		`((h, fold) => { let bad = 0; for (let k = 0; k < 200; k++) { const names = [...new Set(Array.from({length: k % 17}, (_, i) => 'n' + String((k * 7919 + i * i * 31) % 120).padStart(k % 4, '0')))]; if (h(fold(names)).sort().join() !== names.sort().join()) bad++; } return bad; })(m.hosts, window.fold)`); n != 0 {
		t.Errorf("%d lists do not spell out again", n)
	}
}

// TestFleetColours holds that the order of colours is seen without seeing hues: lightness goes one way only.
func TestFleetColours(t *testing.T) {
	p := start(t)
	for theme, up := range map[string]bool{"light": false, "dark": true} {
		p.run(`document.documentElement.dataset.theme = '` + theme + `'`)
		light := module[[]float64](p, "fleetscale.js",
			`Array.from({length: 21}, (_, i) => [0, 8, 16].map((by) => (m.pixels()[Math.round(255 * i / 20)] >> by & 255)).map((c) => ((c / 255 + 0.055) / 1.055) ** 2.4)).map(([r, g, b]) => 116 * Math.cbrt(0.2126 * r + 0.7152 * g + 0.0722 * b) - 16)`)
		for i := 1; i < len(light); i++ {
			if d := light[i] - light[i-1]; (d > 0) != up || d < 1 && d > -1 {
				t.Errorf("%s: lightness goes from %.1f to %.1f at step %d", theme, light[i-1], light[i], i)
			}
		}
		t.Logf("%s: lightness from %.0f to %.0f", theme, light[0], light[len(light)-1])
	}
}
