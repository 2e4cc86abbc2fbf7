package evidence

import (
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/finding"
)

// BusyBefore is what a rank did last before others gave up waiting: data, save or
// load, and how long it had done so in seconds ("" where the line does not say).
const BusyBefore Kind = "busy-before"

// busyLines is how many lines may lie between what a rank does and the time-out.
const busyLines = 40

const busyWords = "examples/s|tokeniz|preprocess|pre-processing|saving|checkpoint|it/s]|b/s]|s/it]|download|loading"

// gaveUpWords find the lines in which somebody stops waiting.
const gaveUpWords = "collective operation timeout|socket timeout|waitforinput|wait timeout after|timeout waiting for " +
	"key"

// busyPatterns recognise long work of one rank: bars of tqdm with the time gone by,
// and sentences of trainers.
type busyPatterns struct{ bar, data, save, load *regexp.Regexp }

func newBusyPatterns() *busyPatterns {
	return &busyPatterns{
		bar:  regexp.MustCompile(`\d+%\|.{0,200}?\| ?[\d.]+\w?/[\d.]+\w? \[(?:(\d+):)?(\d+):(\d\d)<`),
		data: regexp.MustCompile(`(?i)\b(?:tokeniz\w+|pre-?process\w*|running tokenizer|map \(num_proc|examples/s)\b`),
		save: regexp.MustCompile(
			`(?i)\b(?:saving|writing)\b.{0,40}\b(?:checkpoint|model|state)|\bsave_(?:checkpoint|pretrained|state)\b|retrieving (?:full model|optimizer) state`),
		load: regexp.MustCompile(`(?i)\b(?:loading checkpoint shards|downloading (?:shards|model|data))\b`),
	}
}

// busy is a line that may tell of long work; it is looked at closer only when
// somebody gives up, since a training loop prints such lines all the time.
type busy struct {
	line int
	text string
}

// busyKept is how many such lines are kept.
const busyKept = 8

// see reads such a line.
func (p *busyPatterns) see(text string) (what, secs string, ok bool) {
	if m := p.bar.FindStringSubmatch(text); m != nil {
		h, mi, s := max(atoi(m[1]), 0), atoi(m[2]), atoi(m[3])
		if mi >= 0 && s >= 0 && h < 1000 {
			secs = strconv.Itoa(3600*h + 60*mi + s)
		}
	}
	switch {
	case p.data.MatchString(text):
		return "data", secs, true
	case p.save.MatchString(text):
		return "save", secs, true
	case p.load.MatchString(text):
		return "load", secs, true
	case secs != "":
		return "bar", secs, true
	}
	return "", "", false
}

// gaveUp reports a line in which somebody stops waiting for the others.
func gaveUp(text string) bool {
	return strings.Contains(text, "collective operation timeout") || strings.Contains(text, "Socket Timeout") ||
		strings.Contains(text, "waitForInput: ") ||
		strings.Contains(text, "wait timeout after") || strings.Contains(text, "Timeout waiting for key")
}

// wait follows the last long work, and files it when somebody gives up soon after.
func (r *Reader) wait(text string, num int) {
	if gave := gaveUp(text); !gave || strings.Contains(text, "%|") { // a bar may stand on the same line
		if len(r.busy) == busyKept {
			r.busy = append(r.busy[:0], r.busy[1:]...)
		}
		r.busy = append(r.busy, busy{num, strings.Clone(text[:min(len(text), 2*maxQuote)])})
		if !gave {
			return
		}
	}
	for i := len(r.busy) - 1; i >= 0; i-- {
		b := r.busy[i]
		if num-b.line > busyLines {
			break
		}
		if what, secs, ok := r.words.busy.see(b.text); ok {
			q := finding.Quote{File: r.name, Line: b.line, Text: b.text}
			r.set.addObservation(BusyBefore, []string{what, secs}, q, "", -1)
			break
		}
	}
	r.busy = r.busy[:0]
}
