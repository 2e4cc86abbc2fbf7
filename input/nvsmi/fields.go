package nvsmi

import (
	"cmp"
	_ "embed" // for the fields
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/csvtable"
)

//go:embed fields.csv
var fieldTable string

// fields are what is used of a GPU, under the names that nvidia-smi gives it.
var fields = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for _, row := range csvtable.Must[struct {
		Name  string `csv:"name"`
		Field string `csv:"field"`
	}]("fields.csv", fieldTable) {
		of[row.Name] = row.Field
	}
	return of
})

// set takes the value of a field; false when it is none.
func (g *gpu) set(field, text string) bool {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "x"))
	if err != nil {
		n = -1
	}
	switch field {
	case "index":
		if n < 0 || n >= maxGPUs {
			return false
		}
		g.Index = n
	case "name":
		if text == "" || len(text) > 128 || text[0] == '[' || text == "Unknown" {
			return false
		}
		g.Model = cluster.FromRead(strings.Clone(text), "")
	case "uuid": // question marks stand for a GPU that no process has opened yet
		if !validUUID(text) {
			return false
		}
		g.UUID = strings.Clone(text)
	case "pci":
		p, err := cluster.ParsePCI(text)
		if err != nil || strings.Count(text, ":") != 2 {
			return false
		}
		g.PCI = p
	case "memory":
		g.GPU.Memory = board.Fact(mebibytes(text), "")
	case "sm":
		if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 1 && v < 100 {
			g.GPU.SM = int(v*10 + 0.5)
		}
	case "gen":
		g.up.GTs = speeds[small(n, 7)]
	case "genmax":
		g.up.MaxGTs = speeds[small(n, 7)]
	case "gpumax":
		g.up.MaxGTs = cmp.Or(g.up.MaxGTs, speeds[small(n, 7)]) // what the slot allows comes first
	case "width":
		g.up.Lanes = small(n, 32)
	case "widthmax":
		g.up.MaxLanes = small(n, 32)
	case "c2c":
		if text == "Enabled" {
			g.up.Kind = cluster.C2C
		}
	case "mig":
		g.addSlice(cluster.Slice{Index: n})
	case "miguuid":
		if k := len(g.GPU.Slices) - 1; k >= 0 && validUUID(text) {
			g.GPU.Slices[k].UUID = strings.Clone(text)
		}
	case "retired":
		g.retired += max(n, 0)
		g.state.Retired = &g.retired
	case "retirepending":
		g.state.RetirePending = new(text == "Yes")
	case "remappending":
		g.state.RemapPending = new(text == "Yes")
	case "remapfailed":
		g.state.RemapFailed = new(text == "Yes")
	}
	return true
}

// addSlice adds a part of a GPU, unless it is there already.
func (g *gpu) addSlice(s cluster.Slice) {
	known := slices.ContainsFunc(g.GPU.Slices, func(o cluster.Slice) bool { return o.Index == s.Index })
	if s.Index >= 0 && !known && len(g.GPU.Slices) < 64 {
		g.GPU.Slices = append(g.GPU.Slices, s)
	}
}

// small keeps a number between 1 and most, else 0.
func small(n, most int) int {
	if n < 1 || n > most {
		return 0
	}
	return n
}
