package evidence

import (
	"bytes"
	"strconv"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
)

// Bounds of what tells a GPU that is hot apart from its equals in one table of nvidia-smi. Equal GPUs of one job differ
// by some degrees and some watts; one that lowers its clocks because of heat draws far less at a higher temperature.
const (
	busyPercent  = 90  // utilisation; idle GPUs and those that wait differ in power for good reasons
	hotDegrees   = 80  // no GPU lowers its clocks below
	apartDegrees = 10  // above the hottest of the others
	apartPower   = 0.7 // of the least power of the others
	leastEquals  = 2
	maxTable     = 256 // GPUs
)

var (
	smiName = lazyre.
		New(`^\|\s{1,4}(\d{1,3})\s+(\S.{0,30}?)\s{2,}(?:On|Off|N/A)\s+\|\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s`)
	smiState = lazyre.
			New(`^\|\s*(?:N/A|ERR!|\d+%)\s+(\d{1,3})C\s+P\d+\s+(\d{1,4})W\s*/\s*(\d{1,4})W\s*\|[^|]*\|\s+(\d{1,3})%\s`)
)

// smiGPU is what the plain table of nvidia-smi says of a GPU.
type smiGPU struct {
	index, name, bus      string
	temp, watt, cap, busy int
	quote                 finding.Quote
}

// smiTable looks for a GPU that is hot and slow among busy equals in a plain table of nvidia-smi.
func (r *Reader) smiTable(data []byte) {
	if !bytes.Contains(data, []byte("| NVIDIA-SMI ")) {
		return
	}
	var list []smiGPU
	var g smiGPU
	num := 0
	for line := range bytes.Lines(data) {
		num++
		text := string(bytes.TrimRight(line[:min(len(line), maxQuote)], "\r\n"))
		if bytes.HasPrefix(line, []byte("| NVIDIA-SMI ")) { // another table: of another host, or a later moment
			r.hotApart(list)
			list = list[:0]
		} else if m := smiName.FindStringSubmatch(text); m != nil {
			g = smiGPU{index: m[1], name: m[2], bus: m[3]}
		} else if m := smiState.FindStringSubmatch(text); m != nil && g.name != "" && len(list) < maxTable {
			for i, p := range []*int{&g.temp, &g.watt, &g.cap, &g.busy} {
				*p, _ = strconv.Atoi(m[i+1]) // at most four digits
			}
			g.quote = finding.Quote{File: r.name, Line: num, Text: text}
			list = append(list, g)
			g = smiGPU{}
		}
	}
	r.hotApart(list)
}

// hotApart files the GPUs of a table that are hot and draw little power beside their equals.
func (r *Reader) hotApart(list []smiGPU) {
	for i := range list {
		g := &list[i]
		equals, temp, watt := 0, 0, 1<<30
		for k := range list {
			if o := &list[k]; k != i && o.name == g.name && o.cap == g.cap && o.busy >= busyPercent {
				equals, temp, watt = equals+1, max(temp, o.temp), min(watt, o.watt)
			}
		}
		if equals < leastEquals || g.busy < busyPercent || g.temp < hotDegrees || g.temp < temp+apartDegrees ||
			float64(g.watt) > apartPower*float64(watt) {
			continue
		}
		args := []string{g.index, strconv.Itoa(g.temp), strconv.Itoa(g.watt), strconv.Itoa(temp), strconv.Itoa(watt)}
		if o := r.set.addObservation(HotAmongEqual, args, g.quote, "", -1); o != nil {
			o.GPUs = map[string]bool{g.bus: true}
		}
	}
}
