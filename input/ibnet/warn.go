package ibnet

import (
	_ "embed" // for the texts

	"busbar.dev/internal/csvtable"
)

// notice is something that a reader counts on the way; each kind becomes one warning.
type notice int

const (
	badLine notice = iota
	clash
	differ
	unknownSpeed
	shared
	unnamed
	aggregation
	router
	allPorts
	someKind
	noCable
	mentioned
	oneSided
	allNotices
)

//go:embed notices.csv
var noticeTable string

// text is a row of the table.
type text struct {
	Notice string `csv:"notice"`
	Before string `csv:"before,optional"`
	One    string `csv:"one"`
	Many   string `csv:"many"`
	Rest   string `csv:"rest"`
}

var notices = csvtable.Once[text]("notices.csv", noticeTable)

// noticed counts occurrences and keeps the first.
type noticed struct {
	n, line int
	what    string
}

func (f *fabric) notice(which notice, line int, what string) {
	s := &f.seen[which]
	if s.n == 0 {
		s.line, s.what = line, what
	}
	s.n++
}

// warn turns what was noticed into one warning of a kind.
func (f *fabric) warn() {
	for i, t := range notices() {
		if s := f.seen[i]; s.n > 0 {
			if s.n == 1 {
				t.Many = t.One
			}
			f.out.Warnf(s.line, "", t.Before+"%[1]d %[3]s "+t.Rest, s.n, s.what, t.Many)
		}
	}
}

// incomplete warns of a scan that did not see the whole fabric: no cables, neighbours without lines of their own,
// cables that one end does not list.
func (f *fabric) incomplete() {
	cables := 0
	for n := range f.nodes {
		if nd := &f.nodes[n]; !nd.own {
			f.notice(mentioned, nd.line, nd.title())
		}
	}
	for i := range f.ports {
		p := &f.ports[i]
		if p.peer < 0 || i > p.peer {
			continue
		}
		cables++
		q := &f.ports[p.peer]
		if p.own != q.own && f.nodes[p.node].own && f.nodes[q.node].own {
			f.notice(oneSided, max(p.line, q.line), f.where(i)+" to "+f.where(p.peer))
		}
	}
	if cables == 0 {
		f.seen[noCable].n = len(f.nodes)
	}
}
