package workload

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

//go:embed data/recipes.csv
var recipesCSV string

// Recipe is what a framework's recipes turn on for experts and graphs: how tokens go to experts, whether that is beside
// another micro-batch's passes, and what CUDA graphs hold.
type Recipe struct {
	Dispatcher Dispatcher `csv:"dispatcher"`
	Overlap    bool       `csv:"overlap,optional"`
	Graphs     GraphScope `csv:"graphs,optional"`
	Kernels    Kernels    `csv:"kernels,optional"` // of models with experts, where they are others than the framework's
	Known      bool       // a row says it
}

// GraphScope is what CUDA graphs hold of a model with experts.
type GraphScope string

// Scopes of graphs. GraphUsual is attention on GPUs of Grace's and the router alone on others.
const (
	NoGraphs       GraphScope = ""
	GraphUsual     GraphScope = "default"
	GraphRouter    GraphScope = "router"
	GraphAttention GraphScope = "attention"
	GraphWhole     GraphScope = "whole"
)

// recipeRow is one row of the table: a recipe, and what it is of.
type recipeRow struct {
	ID        string   `csv:"id"`
	Framework string   `csv:"framework"`
	Since     string   `csv:"since"`
	SM        int      `csv:"sm,optional"`
	GPUs      []string `csv:"gpus,optional"`
	Hidden    int64    `csv:"hidden,optional"`
	Experts   int64    `csv:"experts,optional"`
	Recipe
	Source string `csv:"source"`
}

var recipeRows = sync.OnceValue(func() []recipeRow {
	return csvtable.Must[recipeRow]("workload/data/recipes.csv", recipesCSV)
})

// Recipe is that of the framework for a model on GPUs of a name and a compute capability; without a row, tokens go by
// an all-to-all.
func (f *Framework) Recipe(m *Model, gpu string, sm int) Recipe {
	r := Recipe{Dispatcher: AllToAll}
	for _, x := range recipeRows() {
		if x.Framework != f.Name || x.Since > f.At || sm < x.SM ||
			len(x.GPUs) > 0 && !slices.ContainsFunc(x.GPUs, func(p string) bool { return strings.HasPrefix(gpu, p) }) ||
			x.Experts > 0 && (m == nil || m.Dims.Experts != x.Experts || m.Dims.Hidden != x.Hidden) {
			continue
		}
		r = x.Recipe
		r.Known = true
	}
	if r.Graphs == GraphWhole && m.scans() { // hybrids keep graphs of modules
		r.Graphs = GraphAttention
	}
	return r
}

// Sinks reports whether a model's attention has a number a head beside its scores.
func (m *Model) Sinks() bool {
	return m != nil && slices.ContainsFunc(m.Blocks, func(b Block) bool {
		return slices.ContainsFunc(b.Parts, func(p Part) bool { return strings.HasSuffix(p.Name, ".sinks") })
	})
}

// scans reports whether a model has layers that scan.
func (m *Model) scans() bool {
	return m != nil && slices.ContainsFunc(m.Blocks, func(b Block) bool {
		return slices.ContainsFunc(b.Parts, func(p Part) bool { return p.Kind == Scan })
	})
}
