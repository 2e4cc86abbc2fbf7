package browsertests

import (
	"strings"
	"testing"
)

const answered = `document.querySelector('.cards table') && !document.querySelector('.busy')`

func TestPredict(t *testing.T) {
	p := start(t)
	for _, c := range []struct{ name, path string }{
		{"predict", "/predict?c=dgx-h100:4"},
		{"predict-one", "/predict?c=dgx-h100:4&algo=auto"},
		{"predict-compare", "/predict?c=baskerville:4&l=1x4,2x2,4x1&algo=auto"},
	} {
		p.open(c.path, answered)
		p.shot(c.name)
		p.clean(c.name)
	}
}

// TestLinkByFlags opens a comparison by the names that the command's flags have. What would be otherwise on other GPUs
// of the nodes stands at its layout.
func TestLinkByFlags(t *testing.T) {
	p := start(t)
	p.open("/predict?c=baskerville&compare=1x4,2x2,4x1&size=1320MB", `document.querySelector('.side-by-side .note')`)
	if said := p.text(".side-by-side"); !strings.Contains(said, "If: GPUs 2,3 of each node") {
		t.Errorf("the comparison says %q; expected what GPUs 2 and 3 take", said)
	}
	p.shot("predict-by-flags")
	p.clean("a link by flags")
}

// TestSources reads the source documents: their text has the width of the page, and above it stands the picture of one
// command, three layouts with ring and tree beside the figures of the table below. The view of a step draws the same.
func TestSources(t *testing.T) {
	p := start(t)
	p.open("/sources", `document.querySelectorAll('.document .side-by-side').length === 2`)
	p.shot("sources")
	drawn := p.text(".document .card")
	for _, want := range []string{
		"2x2 ring", "published: 6.62 ×", "published: 587 ms for 1.32 GB", "GB each way through a NIC",
		"--compare 1x4,2x2,4x1",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("expected %q in the picture, which says:\n%s", want, drawn)
		}
	}
	wide, err := eval[bool](p, `document.querySelector('.document > .scroll').clientWidth > 0.9 * innerWidth`)
	if err != nil || !wide {
		t.Errorf("%v; expected tables as wide as the window", err)
	}
	p.clean("the source documents")
	p.open("/step?c=baskerville&m=gpt2-large&framework=ddp&l=1x4,2x2,4x1&micro-batch=4",
		`document.querySelectorAll('.side-by-side').length === 2`)
	p.shot("step-compare")
	p.clean("layouts of a step")
}
