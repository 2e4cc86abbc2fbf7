package report

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// makeCaptions says once, on the left of each row, what all of its boxes and
// links have in common.
func (p *panel) makeCaptions() {
	if !p.captions {
		return
	}
	if p.nicH > 0 {
		p.caption = append(p.caption, caption{p.nicY + p.nicH/2, netViol, nicCaption(p.t)})
	}
	if len(p.fast) > 0 {
		var text []string
		for i := range p.fast {
			text = append(text, fastCaption(p.t, &p.fast[i])...)
		}
		color := linkColor(p.fast[0].kind)
		p.caption = append(p.caption, caption{p.gpuY - p.band/2 + 4, color, text})
	}
	if p.t.Count(cluster.GPU) > 0 {
		p.caption = append(p.caption, caption{p.gpuY + p.gpuH/2, nvGreen, gpuCaption(p.t)})
	}
	if text := p.pcieCaption(); len(text) > 0 {
		y := p.switchY + switchH/2
		if p.deep == 0 {
			y = p.switchY - rowGap/2 + 4
		}
		p.caption = append(p.caption, caption{y, pcieBlue, text})
	}
	if p.hasCPU() {
		text := []string{words.Plural(p.t.Count(cluster.NUMA), "NUMA domain")}
		if n := p.t.Count(cluster.Socket); n > 0 {
			text = append([]string{words.Plural(n, "socket")}, text...)
		}
		p.caption = append(p.caption, caption{p.numaY + numaH/2, smpBrown, text})
	}
}

// nicCaption says what the NICs of a node have in common.
func nicCaption(t *cluster.NodeType) []string {
	nics := t.Of(cluster.NIC)
	model, kind, rate := "", "", ""
	for i, n := range nics {
		dev := &t.Devices[n]
		m, k, r := shortModel(dev.Model.Value), "", nicRateText(dev)
		if dev.NIC != nil {
			k = netName(dev.NIC.Kind)
		}
		if i == 0 {
			model, kind, rate = m, k, r
			continue
		}
		model, kind, rate = same(model, m), same(kind, k), same(rate, r)
	}
	if rate != "" && len(nics) > 1 && rate != "down" {
		rate += " each"
	}
	return nonEmpty(countOf(len(nics), model, "NIC"), kind, rate)
}

// gpuCaption says what its GPUs have in common.
func gpuCaption(t *cluster.NodeType) []string {
	model, mem := "", ""
	gpus := t.Of(cluster.GPU)
	for i, g := range gpus {
		dev := &t.Devices[g]
		m, k := shortModel(dev.Model.Value), ""
		if dev.GPU != nil && dev.GPU.Memory.Known() {
			k = memory(dev.GPU.Memory.Value)
		}
		if i == 0 {
			model, mem = m, k
			continue
		}
		model, mem = same(model, m), same(mem, k)
	}
	if mem != "" && len(gpus) > 1 {
		mem += " each"
	}
	return nonEmpty(countOf(len(gpus), model, "GPU"), mem)
}

// countOf is "8 × H100", or "8 GPUs" when the model is not one and the same.
func countOf(n int, model, noun string) string {
	if model == "" {
		return words.Plural(n, noun)
	}
	return fmt.Sprintf("%d × %s", n, model)
}

// fastCaption says how its GPUs are linked.
func fastCaption(t *cluster.NodeType, s *fast) []string {
	rate := func(b *bundle, way string) string {
		if !b.rate.Known() {
			return "rate unknown"
		}
		return b.rate.Value.String() + way + assumed(b.rate.Origin)
	}
	first := &s.bundles[0]
	switch {
	case s.via >= 0 && len(s.bundles) == 1:
		links := ""
		if first.lanes > 0 {
			links = words.Plural(first.lanes, "link") + " per GPU"
		}
		return nonEmpty(s.name+" via NVSwitch", links, rate(first, " one direction"))
	case s.full(t):
		return []string{s.name + ", full mesh", first.short(s.kind) + " between each pair", rate(first, " one direction")}
	}
	text := []string{s.name}
	if s.via >= 0 {
		text[0] += " via NVSwitch"
	} else {
		text[0] += " mesh"
	}
	for i := range s.bundles {
		b := &s.bundles[i]
		way := ""
		if b.oneWay {
			way = " one way"
		}
		text = append(text, b.short(s.kind)+way+": "+rate(b, ""))
	}
	return append(text, "one direction")
}

// pcieCaption names the usual link of GPUs, and of NICs and switches where theirs
// differs.
func (p *panel) pcieCaption() []string {
	var text []string
	first := ""
	for _, k := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.GPU, "GPU: "}, {cluster.NIC, "NIC: "}, {cluster.PCISwitch, "up: "}} {
		l := p.commonLink(k.kind)
		if l == nil || l.Kind != cluster.PCIe && l.Kind != cluster.C2C {
			continue
		}
		s := linkName(l)
		if l.Rate.Known() {
			s += ", " + l.Rate.Value.String() + assumed(l.Rate.Origin)
		}
		switch {
		case first == "":
			first = s
			text = append(text, s)
		case s != first:
			text = append(text, k.name+s)
		}
	}
	return text
}

// assumed marks a figure that nobody read.
func assumed(o cluster.Origin) string {
	if o == cluster.Assumed {
		return " assumed"
	}
	return ""
}

// same keeps a text that is equal for all.
func same(a, b string) string {
	if a != b {
		return ""
	}
	return a
}

func nonEmpty(texts ...string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
