package browsertests

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// fakeJobs are a job of eight ranks on two nodes whose rank 5 is late, and one that is as it should be.
func fakeJobs(w http.ResponseWriter, _ *http.Request) {
	now := time.Now().UTC()
	row := func(comm, group, op string, ranks, class int, transfer, wait, bw float64, verdict string) doc {
		return doc{
			"comm": comm, "group": group, "ranks": ranks, "nodes": 2, "seen": ranks, "op": op, "bytes": 1 << class,
			"class": class, "algo": "ring", "proto": "simple", "count": 640, "time_s": (transfer + wait) / 1e6,
			"transfer_s": transfer / 1e6, "wait_s": wait / 1e6,
			"busbw_GBps": bw, "compared": 640, "late_rank": 5, "late_share": 0.86, "verdict": verdict,
			"expected": doc{
				"time_s": 610e-6, "low_s": 420e-6, "high_s": 900e-6, "busbw_GBps": 48.1, "algo": "ring", "proto": "simple",
				"limit": "the NICs of the nodes",
			},
		}
	}
	ranks := []doc{}
	for r := range 8 {
		host, wait := fmt.Sprintf("gpu%02d", 1+r/4), 0.12
		if r == 5 {
			wait = 0.004
		}
		ranks = append(ranks, doc{"rank": r, "host": host, "pid": 4000 + r, "local": r % 4, "wait": wait, "calls": 1280})
	}
	send := row("c0ffee", "pp0", "send", 2, 20, 0, 0, 0, "")
	delete(send, "expected")
	give(w, doc{
		"from": now.Add(-time.Minute), "to": now, "predicted_on": "fleet",
		"jobs": []doc{{
			"name": "4242", "world": 8, "ranks": ranks, "seconds": 58.2, "waiting": 0.118,
			"rows": []doc{
				row("beef01", "world", "all_reduce", 8, 24, 640, 310, 45.8, "as expected"),
				row("beef01", "world", "all_gather", 8, 21, 1400, 120, 11.2, "slow network"),
				row("beef02", "dp", "reduce_scatter", 4, 23, 520, 600, 40, "waits"), send,
			},
			"late": doc{
				"ranks": []int{5}, "host": "gpu02", "pid": 4005, "share": 0.114, "stretches": 12, "last": 12, "confidence": 0.99,
			},
		}, {
			"name": "7", "world": 2, "ranks": ranks[:2], "seconds": 10.0, "waiting": 0.001,
			"rows": []doc{row("beef03", "world", "all_reduce", 2, 24, 600, 10, 48, "as expected")},
		}},
		"findings": []doc{
			{
				"id": "late-rank:gpu02/rank5", "kind": "late-rank", "severity": "warn", "confidence": 0.99,
				"nodes": []string{"gpu02"}, "text": "Rank 5 on gpu02 (process 4005) comes last to the collectives of job 4242: " +
					"the median of the other ranks waits 11.4% of the time for it.",
				"evidence": []string{"it waits least of 8 ranks in 12 of 12 equal stretches of the 58.2 s seen"},
				"fix":      "look at what this rank does between collectives",
			},
		},
	})
}

// TestJobs shows running jobs, opens a row and a rank, in both themes and on three screens.
func TestJobs(t *testing.T) {
	axe := ""
	if _, err := os.Stat(*axeFile); err == nil {
		axe = axeCore(t)
	}
	p := start(t)
	p.open("/jobs", `document.querySelector('.jobs[data-shown=none]')`)
	p.shot("jobs-none")
	f := newFakeFleet(2, 8)
	f.jobs = fakeJobs
	f.before(t, p)
	const shown = `document.querySelector('.jobs[data-shown=job] canvas')`
	for _, theme := range []string{"light", "dark"} {
		p.run(`localStorage.setItem('theme', '` + theme + `')`)
		for _, w := range []int64{390, 1366, 1920} {
			p.do(chromedp.EmulateViewport(w, 900))
			p.open("/jobs?rank=5", shown)
			p.wait(`document.querySelector('.one h3')?.textContent.includes('Rank 5')`)
			p.wait(`document.documentElement.scrollWidth <= innerWidth + 1`)
			p.shot(fmt.Sprintf("jobs-%s-%d", theme, w))
			p.run(`document.querySelector('#of').scrollIntoView()`)
			p.shot(fmt.Sprintf("jobs-%s-%d-curves", theme, w))
			p.run(`document.querySelector('.one').scrollIntoView()`)
			p.shot(fmt.Sprintf("jobs-%s-%d-ranks", theme, w))
		}
		p.do(chromedp.EmulateViewport(1366, 900))
		p.open("/jobs", shown)
		p.run(`[...document.querySelectorAll('.jobs table button.link')].find((b) => b.textContent === 'dp').click()`)
		p.wait(`document.querySelector('#of').textContent.includes('reduce_scatter')`)
		p.
			run(`(() => { const s = document.querySelector('.jobs select'); s.value = '7'; s.dispatchEvent(new Event('change')); })()`)
		p.wait(`document.querySelector('.figures').textContent.includes('none')`)
		p.clean("jobs " + theme)
		if axe != "" {
			p.audit(axe, "jobs "+theme)
		}
	}
}
