package evidence

import (
	"cmp"
	"strings"

	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/input/joblog"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// infoMark is in every record that says how NCCL goes on.
const infoMark = "NCCL INFO "

// maxLine is how much of a line is looked at that is no record of NCCL.
const maxLine = 1 << 15

// fileLine files what a line shows.
func (r *Reader) fileLine(l *nccllog.Line, s *sight) {
	if s.parts == nil {
		r.line(l, s)
	}
	for i := range s.parts {
		r.line(&s.parts[i].line, &s.parts[i].sight)
	}
}

// line files what a line shows. The first of a source may be sentences.
func (r *Reader) line(l *nccllog.Line, s *sight) {
	q := finding.Quote{File: r.name, Line: l.Num, Text: l.Text}
	if strings.HasPrefix(l.Text, "GPU ") {
		if m := gpuHead.FindStringSubmatch(l.Text); m != nil {
			r.gpu = strings.Clone(m[1])
		}
	}
	hits, rank, sentence := s.hits, s.rank, false
	if r.prose(l.Text) {
		return
	}
	if !s.call {
		r.lastError(l)
		if legend(l.Text) {
			return
		}
		if l.Num <= maxTalk {
			sentence = r.sentence(l.Text, q)
			r.failed = r.failed || failure(unlabelled(l.Text))
			hits, _ = r.look.look(l, sentence)
			rank, s.lines = label(l.Text), true
		}
	}
	took, warn := s.lines && r.matches(l.Text, q, sentence), false
	for i := range hits {
		h := &hits[i]
		warn = warn || h.special == warned
		took = r.file(h, l, q, cmp.Or(1+h.rank, 1+rank)-1) || took
	}
	if sentence {
		r.sentences++
		r.told = append(r.told, sighting{short(q), strings.Clone(l.Text)})
	}
	if warn && !took && !sentence && !strings.Contains(l.Text, infoMark) {
		r.unknown(q)
	}
}

// matches files the patterns that a line matches.
func (r *Reader) matches(text string, q finding.Quote, sentence bool) (took bool) {
	for _, p := range r.Patterns {
		at := p.FindStringIndex(text[:min(len(text), maxLine)])
		if at != nil && !(sentence && told.Denies(text, at[0], at[1])) {
			r.set.addObservation(Line, []string{p.String()}, q, "", label(text))
			took = true
		}
	}
	return took
}

// legend reports a line with which nvidia-smi topo -m explains a word of its matrix: it stands below every matrix and
// says nothing of this one.
func legend(text string) bool {
	return strings.Contains(text, "= Connection traversing") && legendLine.MatchString(text)
}

var legendLine = lazyre.New(`^\s*(?:SYS|NODE|PHB|PXB|PIX|NV#)\s*= Connection traversing`)

// file files one thing that a line shows, and reports whether it is one that was seen.
func (r *Reader) file(h *hit, l *nccllog.Line, q finding.Quote, rank int) bool {
	host := ""
	if len(l.Records) > 0 {
		host = l.Records[0].Host
	}
	switch {
	case h.special == warned, h.special == begins:
		return false
	case h.special == settings:
		return r.settings(h, q, host)
	case h.special == training:
		return r.step(l.Text, q)
	}
	if host == "" && strings.Contains(ofMachine, " "+string(h.kind)+" ") {
		host = joblog.HostOf(r.name, l.Text)
	}
	o := r.set.addObservation(h.kind, h.args, q, host, rank)
	// These nvidia-smi -q prints below the address of the GPU that they are about.
	if o != nil && r.gpu != "" && (h.kind == "throttled" || h.kind == "gpu-hot") && len(o.GPUs) < maxHosts {
		if o.GPUs == nil {
			o.GPUs = map[string]bool{}
		}
		o.GPUs[r.gpu] = true
	}
	return true
}

// ofMachine are kinds of lines that the kernel or a tool prints about the machine that it runs on.
const ofMachine = " xid gpu-lost throttled gpu-hot host-memory link-down iommu-fault "

// gpuHead is the line with which nvidia-smi -q begins a GPU.
var gpuHead = lazyre.New(`^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)

// sentence reports a line that somebody may have written. A single word that could be
// one is kept beside the others.
func (r *Reader) sentence(text string, q finding.Quote) bool {
	words, ok := talk(text)
	if ok && (words >= 2 || alone(text)) {
		return true
	}
	if ok {
		r.told = append(r.told, sighting{short(q), strings.Clone(text)})
	}
	return false
}

// lastError takes the line after "Last error:".
func (r *Reader) lastError(l *nccllog.Line) {
	if r.last {
		if msg := lines.Shape(unlabelled(l.Text)); msg != "" {
			r.set.addObservation(LastError, []string{msg}, finding.Quote{File: r.name, Line: l.Num, Text: l.Text}, "",
				label(l.Text))
		}
	}
	r.last = strings.HasSuffix(strings.TrimRight(l.Text, " "), "Last error:")
}
