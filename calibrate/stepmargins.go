package calibrate

import (
	"maps"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/step"
)

// StepMargin is the error bar of a class of jobs.
type StepMargin struct {
	Class    string
	Clusters int
	Factor   float64
}

// Of bars: of every cluster the error that holds this share of its runs, of clusters the share that a bar is to hold, as many clusters of
// the family as a class counts for itself, and no bar is wider than so many times.
const (
	barShare  = 0.8
	barZ      = 0.8416 // of four fifths
	barFamily = 4
	barMost   = 3
)

// StepMargins are the bars that follow from errors of runs that were left out: of each cluster the error that holds four fifths of its
// runs, and over clusters what the next one is expected below, with few of them drawn to all.
func StepMargins(rows []*truth.RunRow) []StepMargin {
	by := map[string]map[string][]float64{}
	for _, r := range rows {
		c := step.Class(r.Step.Job(), r.GPU)
		if by[c] == nil {
			by[c] = map[string][]float64{}
		}
		by[c][r.Cluster] = append(by[c][r.Cluster], math.Abs(math.Log(r.Predicted/r.Seconds())))
	}
	var all []float64
	quantiles := map[string][]float64{}
	for c, clusters := range by {
		for _, name := range slices.Sorted(maps.Keys(clusters)) {
			quantiles[c] = append(quantiles[c], stats.Quantile(clusters[name], barShare))
		}
		all = append(all, quantiles[c]...)
	}
	mean, sd := spread(all)
	var list []StepMargin
	for _, c := range slices.Sorted(maps.Keys(quantiles)) {
		n := float64(len(quantiles[c]))
		m, s := spread(quantiles[c])
		m = (n*m + barFamily*mean) / (n + barFamily)
		s = math.Sqrt((n*s*s + barFamily*sd*sd) / (n + barFamily))
		free := n + barFamily - 1
		t := barZ + (barZ*barZ*barZ+barZ)/(4*free)
		list = append(list, StepMargin{c, int(n), math.Min(barMost, math.Exp(m+t*s*math.Sqrt(1+1/(n+barFamily))))})
	}
	return list
}

// spread is mean and standard deviation.
func spread(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / math.Max(1, float64(len(x)-1))
	}
	return mean, math.Sqrt(sd)
}
