package browsertests

import "testing"

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
