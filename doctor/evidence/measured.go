package evidence

import (
	"bytes"
	"encoding/json"

	"busbar.dev/internal/lazyre"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Pairs is what `busbar bench pairs --json` measured between every two ranks.
type Pairs struct {
	File  string
	Alone bool // one pair at a time; else all pairs of a round concurrently
	Notes bool // the document says why what stands out is no more than a note
	pairs.Table
}

// maxPairRanks bounds a table of pairs.
const maxPairRanks = 4096

// rankLabel is what launchers put before every line: "node0| ", "[3]: ".
var rankLabel = lazyre.New(`(?m)^[\w.:-]{1,80}\| ?`)

// pairsDoc is the part of the document that is used.
type pairsDoc struct {
	Alone     *bool      `json:"alone"`
	Names     []string   `json:"names"`
	Notes     []string   `json:"notes"`
	Scatter   []float64  `json:"scatter"`
	Hosts     []string   `json:"hosts"`
	Bandwidth pairs.Grid `json:"bandwidth_GBps"`
	Both      pairs.Grid `json:"both_GBps"`
	Latency   pairs.Grid `json:"latency_s"`
}

// measured reads a table of pairs, bare or behind the labels of ranks; false when
// the text is something else.
func (r *Reader) measured(data []byte) bool {
	if !bytes.Contains(data[:min(len(data), 1<<12)], []byte(`"bandwidth_GBps"`)) {
		return false
	}
	text := rankLabel.ReplaceAll(data, nil)
	if i := bytes.IndexByte(text, '{'); i > 0 {
		text = text[i:]
	}
	var d pairsDoc
	if json.NewDecoder(bytes.NewReader(unit.InSeconds(text))).Decode(&d) != nil || d.Alone == nil {
		return false
	}
	n := len(d.Bandwidth)
	if n < 2 || n > maxPairRanks {
		return false
	}
	if len(d.Names) != n {
		d.Names = d.Hosts
	}
	if len(d.Names) != n {
		return false
	}
	p := Pairs{File: r.name, Alone: *d.Alone, Notes: len(d.Notes) > 0}
	p.Table = *pairs.FromGrids(d.Names, d.Bandwidth, d.Both, d.Latency)
	if copy(p.Scatter[:], d.Scatter); len(d.Hosts) == n {
		p.Hosts = d.Hosts
	}
	r.set.Pairs = append(r.set.Pairs, p)
	r.document = true // its texts are findings, not what somebody tells
	return true
}
