package nvsmi

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
)

const (
	listFormat   = "nvidia-smi -L"
	nvlinkFormat = "nvidia-smi nvlink -s"
)

// MatchList reports whether data holds the list of nvidia-smi -L or the links of
// nvidia-smi nvlink -s, which have the same lines for GPUs.
func MatchList(data []byte) bool {
	named := false
	return gather.Find(data, "GPU ", func(text string) bool {
		g, ok := gpuLine(text)
		named = named || ok
		return ok && g.uuid != ""
	}) || named && gather.Find(data, "Link ", func(text string) bool {
		_, ok := linkLine(text)
		return ok
	})
}

// ReadList reads GPUs with name and UUID, their MIG slices, and their NVLinks.
// How fast a link is stays out of the result, for the text does not say where
// the link leads; links that are down or slower than others are warnings.
func ReadList(name string, r io.Reader) (*cluster.Fragment, error) {
	v := &inventory{format: listFormat}
	l := lister{v: v, at: map[string]*gpu{}}
	if err := l.heads.Each(name, r, l.takeLine); err != nil {
		return nil, err
	}
	if l.linked {
		v.format = nvlinkFormat
	}
	return v.fragment(name, "no list of GPUs found; expected lines such as GPU 0: NVIDIA H100 (UUID: GPU-…); save the "+
		"output of nvidia-smi -L")
}

type lister struct {
	v      *inventory
	heads  gather.Headings
	at     map[string]*gpu // the GPU that further lines of a host speak of
	linked bool
}

// takeLine gives a line to the list of a host and reports whether it belonged there.
func (l *lister) takeLine(prefix, text string, num int) bool {
	if g, ok := gpuLine(text); ok {
		g.line = num
		l.at[prefix] = l.v.noteGPU(l.heads.Host(prefix), g) // UUIDs differ, so that no two hosts are gathered
		return true
	}
	g := l.at[prefix]
	if g == nil {
		return false
	}
	if s, ok := migLine(text); ok {
		if len(g.slices) < 64 && !hasSlice(g.slices, s) {
			g.slices = append(g.slices, s)
		}
		return true
	}
	if speed, ok := linkLine(text); ok {
		l.linked = true
		if g.links < 1024 {
			g.links++
			if speed == 0 {
				g.down++
			} else {
				g.speeds = append(g.speeds, speed)
			}
		}
		return true
	}
	return false
}

func hasSlice(all []cluster.Slice, s cluster.Slice) bool {
	return slices.ContainsFunc(all, func(o cluster.Slice) bool { return o.Index == s.Index })
}

// gpuLine reads "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)"; nvlink -s of some
// drivers leaves the UUID out.
func gpuLine(text string) (gpu, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "GPU ")
	if !ok || len(rest) > 256 {
		return gpu{}, false
	}
	num, name, _ := strings.Cut(rest, ": ")
	var g gpu
	if name == "" || !g.set("index", num) {
		return g, false
	}
	name, id, _ := strings.Cut(name, " (UUID: ")
	id, _, _ = strings.Cut(id, ")")
	g.set("uuid", id)
	g.set("name", strings.TrimSpace(name))
	return g, true
}

// migLine reads "  MIG 3g.40gb     Device  0: (UUID: MIG-…)".
func migLine(text string) (cluster.Slice, bool) {
	w := strings.Fields(text)
	if len(w) < 6 || w[0] != "MIG" || w[2] != "Device" || w[4] != "(UUID:" {
		return cluster.Slice{}, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(w[3], ":"))
	if err != nil || index < 0 || index > 64 || len(w[1]) > 32 {
		return cluster.Slice{}, false
	}
	s := cluster.Slice{Index: index, Profile: strings.Clone(w[1])}
	if id := strings.TrimSuffix(w[5], ")"); validUUID(id) {
		s.UUID = strings.Clone(id)
	}
	return s, true
}

// linkLine reads "Link 3: 26.562 GB/s" and "Link 3: <inactive>" (speed 0).
func linkLine(text string) (speed float64, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "Link ")
	if !ok {
		return 0, false
	}
	num, state, ok := strings.Cut(rest, ": ")
	if _, err := strconv.Atoi(num); !ok || err != nil {
		return 0, false
	}
	state = strings.TrimSpace(state)
	if strings.EqualFold(state, "<inactive>") {
		return 0, true
	}
	fig, ok := strings.CutSuffix(state, " GB/s")
	v, err := strconv.ParseFloat(fig, 64)
	if !ok || err != nil || !(v > 0 && v < 1e4) {
		return 0, false
	}
	return v, true
}
