package nvsmi

import (
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lazyre"
)

const (
	listFormat   = "nvidia-smi -L"
	nvlinkFormat = "nvidia-smi nvlink"
)

// MatchList reports whether data holds the list of nvidia-smi -L or the links of
// nvidia-smi nvlink -s, which have the same lines for GPUs.
func MatchList(data []byte) bool {
	named := false
	return gather.Find(data, "GPU ", func(text string) bool {
		g := gpuLine(text, 0)
		named = named || g != nil
		return g != nil && g.UUID != ""
	}) || named && gather.Find(data, "Link ", func(text string) bool {
		return linkState.MatchString(text) || linkErrors.MatchString(text)
	})
}

// ReadList reads GPUs with name and UUID, their MIG slices, and how many NVLinks
// they have; those that are down are a warning.
func ReadList(name string, r io.Reader) (*cluster.Fragment, error) {
	l := newReader(listFormat)
	return l.read(name, r, l.listLine,
		"no list of GPUs found; expected lines such as GPU 0: NVIDIA H100 (UUID: GPU-…); save the output of nvidia-smi -L")
}

// listLine gives a line to the list of a host and reports whether it belonged there.
func (l *reader) listLine(prefix, text string, num int) bool {
	if g := gpuLine(text, num); g != nil {
		l.at[prefix] = l.noteGPU(l.heads.Host(prefix), g) // UUIDs differ, so that no two hosts are gathered
		return true
	}
	g := l.at[prefix]
	if g == nil {
		return false
	}
	if m := migLine.FindStringSubmatch(text); m != nil {
		index, _ := strconv.Atoi(m[2])
		g.addSlice(cluster.Slice{Index: index, Profile: strings.Clone(m[1]), UUID: strings.Clone(m[3])})
		return true
	}
	if m := linkErrors.FindStringSubmatch(text); m != nil {
		l.format = nvlinkFormat
		if m[3] != "" && len(g.errors) < 256 {
			g.errors += strings.Repeat(", ", min(len(g.errors), 1)) + "link " + m[1] + ": " + m[3] + " " + m[2]
		}
		return true
	}
	m := linkState.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	l.format = nvlinkFormat
	if g.GPU.Links < 1024 {
		g.GPU.Links++
		if m[1] == "" {
			g.down++
		}
	}
	return true
}

// gpuLine reads "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)"; nvlink -s of some
// drivers leaves the UUID out. nil: it is none.
func gpuLine(text string, line int) *gpu {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "GPU ")
	if !ok || len(rest) > 256 {
		return nil
	}
	num, name, _ := strings.Cut(rest, ": ")
	g := newGPU(line)
	if name == "" || !g.set("index", num) {
		return nil
	}
	name, id, _ := strings.Cut(name, " (UUID: ")
	id, _, _ = strings.Cut(id, ")")
	g.set("uuid", id)
	g.set("name", strings.TrimSpace(name))
	return g
}

// migLine is "  MIG 3g.20gb     Device  0: (UUID: MIG-…)", of a UUID that was not blotted out.
var migLine = lazyre.New(`^\s*MIG (\S{1,32})\s+Device\s+(\d{1,2}):\s+\(UUID: (?:(` + uuids + `)|.*)\)`)

// linkState is "Link 3: 26.562 GB/s" and "Link 3: <inactive>".
var linkState = lazyre.New(`^\s*Link \d+:\s+(?:([1-9][\d.]*) GB/s|(?i:<inactive>))\s*$`)

// linkErrors is a counter of nvlink -e: "Link 1: Replay Errors: 12".
var linkErrors = lazyre.New(`^\s*Link (\d{1,3}): ([A-Z][A-Za-z ]{1,40} Errors?): (?:0|([1-9]\d{0,18}))\s*$`)
