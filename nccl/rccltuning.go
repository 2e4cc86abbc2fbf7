package nccl

import (
	"strconv"
	"strings"
	"sync"
)

// rcclTuning is one of RCCL's tables of figures, each measured on one system: latencies in µs by step, the part of the rings'
// bandwidth that data gets, and by what that is multiplied at a size, 64 B, 128 B and so on. Trees first, then rings.
type rcclTuning struct {
	intra, net [2]protoRow
	ratio      [2][2]protoRow // up to two nodes, more
	factor     [2][nProtos][rcclSizes]float32
}

const rcclSizes = 27

// rcclBase is what any call costs, rcclPCI a step between GPUs without links of their own.
var rcclBase, rcclPCI = protoRow{12, 12, 17}, protoRow{2.2, 2.2, 5.7}

// factors reads "1x2,.5": 1, 1, .5.
func factors(text string) [rcclSizes]float32 {
	var out [rcclSizes]float32
	k := 0
	for _, w := range strings.Split(text, ",") {
		value, times, _ := strings.Cut(w, "x")
		x, _ := strconv.ParseFloat(value, 32)
		n := 1
		if times != "" {
			n, _ = strconv.Atoi(times)
		}
		for range n {
			out[k] = float32(x)
			k++
		}
	}
	return out
}

// byProto are the factors of LL, LL128 and Simple.
func byProto(ll, ll128, simple string) [nProtos][rcclSizes]float32 {
	return [nProtos][rcclSizes]float32{LL: factors(ll), LL128: factors(ll128), Simple: factors(simple)}
}

// rcclTables are those of RCCL 2.21 and, from 5 on, of 2.28 (src/graph/tuning.cc, tuning_model_…).
var rcclTables = sync.OnceValue(func() []rcclTuning {
	const (
		treeLL1, ringLL1 = ".5,.4,.7,.6,1x2,.5,.4,.1,.5,.4,.6,1x5,.8,.6,.5,.4x2,.3,.2,.1x3", "1,.5,1x2,.6,.7,1x2,.2,1,.9,.7,1x3,.9x2,.8x2,.7,.6,.5x2,.3,.2,.1x2"
		treeLL2, ringLL2 = ".1,.4,.3x2,.2,.4,.5,.1x2,.6,.7x2,.8,1,.9,.7,.6,.5,.4,.3,.2x7", ".1,1x7,.4,1x4,.7,.6,.5,.4,.3,.2x2,.1x7"
		treeLL5, ringLL5 = ".1x6,1x5,.6,1,.9,1x2,.1x11", ".1x11,1,.2,1,.4x2,.1,.2x2,.1x8"
		treeSimple5      = ".1x15,.7,1x5,.7x2,.5,.6x3"
		none             = "0x27"
	)
	list := []rcclTuning{
		{
			intra: [2]protoRow{{.8, 1.4, 2.5}, {.8, 2.2, 3.6}}, net: [2]protoRow{{11.8, 18.2, 20.8}, {9.5, 19.8, 15.1}},
			ratio: [2][2]protoRow{{{.04, .22, .91}, {.04, .34, 1}}, {{.04, .22, .95}, {.04, .34, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1,.2,.1x2,.9,.3,.4,.1,.2,.4,.2,.1,.3x2,.2x3,.1x10", ".1,.3,1,.1,.5,1,.9,1x3,.3,.1,.4,.5x2,.4x2,.3x2,.2x8", ".2,1,.1x2,.7,.2,.4,.1x2,.3,.4,.3,.6,.8,1x4,.9,.8x5,.9x3"),
				byProto(".1x5,.2,.4,.2,.3,.5,.3,.1,.5x2,.3,.2x2,.1x10", ".1x9,.3,1x6,.8,.7,.5,.4x2,.3x6", "1,.8,.2,1x2,.3,1,.1x2,.2x2,.1,.5,1,.8x2,1,.9,1x9"),
			},
		},
		{
			intra: [2]protoRow{{1.5, 1.5, 4.5}, {1.5, 1.5, 4.5}}, net: [2]protoRow{{33, 33, 15.8}, {5.1, 5.1, 68.8}},
			ratio: [2][2]protoRow{{{.12, 1, .99}, {.12, 1, 1}}, {{.15, 1, .42}, {.2, 1, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL1, treeLL1, ".1x5,.3,.4,.5,.1,.6,1x3,.6,.5,.7,1x7,.7,.5,.3x2"),
				byProto(ringLL1, ringLL1, ".3,1,.3,.1x3,.3,.7,1,.2,.1x9,.2,.3,.5,.9,1x4"),
			},
		},
		{
			intra: [2]protoRow{{1.5, 1.5, 4.5}, {1.5, 1.5, 4.5}}, net: [2]protoRow{{27.9, 27.9, 15.8}, {12.1, 12.1, 68.8}},
			ratio: [2][2]protoRow{{{.07, 1, .99}, {.08, 1, 1}}, {{.07, 1, .42}, {.08, 1, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL2, treeLL2, "1,.1x4,.2,.3,.5,.1,.6,.9,.8,.7,.9,1x7,.7,.9x2,1x3"),
				byProto(ringLL2, ringLL2, ".1x8,1,.2x2,.1x5,.2,.4,.5,.6,.9,1x6"),
			},
		},
		{
			intra: [2]protoRow{{.8, 0, 2.5}, {.8, 0, 3.6}}, net: [2]protoRow{{12.5, 0, 22.4}, {9.5, 0, 19.8}},
			ratio: [2][2]protoRow{{{.2, 0, 1.75}, {.2, 0, 1}}, {{.2, 0, .96}, {.2, 0, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1x6,1x2,.2,1,.9,1,.6,.4,.6,.4,.3x5,.2x6", none, "1x6,.1x3,.2,1,.8,1x9,.8,.7,.8,.9,.7x2"),
				byProto(".1x5,.3,.1,.2,.1,.4x2,.2x2,.3,.7,.5,.4,.3x4,.2x6", none, ".1x7,.5,1,.1,.3,.1x3,.2x3,.3,.4,.7,1x7"),
			},
		},
		{
			intra: [2]protoRow{{.8, 1.4, 2.5}, {.8, 2.2, 3.6}}, net: [2]protoRow{{32.2, 34.4, 47.6}, {35.4, 87.8, 209.2}},
			ratio: [2][2]protoRow{{{.16, 1.09, 1.61}, {.15, .41, 1}}, {{.16, 1.09, 1.08}, {.15, .41, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1x8,1,.1x2,.2,.4,.6,.5,.1x12", ".1x9,.2,.1x2,.2,1,.5,.2x12", "1x8,.8,.4,.3x2,.1x2,1x2,.7,.5,.6,.5,.6x2,.5,.6x3,.7"),
				byProto(".1x11,.2x2,.1,.3,.1x3,.2,.1x8", ".4,.5x2,.4x4,.2x2,.1,.3,1x2,.7,.8,.5,1x5,.9,.8,.5,.4,.3x2", ".1x9,1x2,.8,.5,.1,.7,.2,.4x2,.6,.7,.9,1x6"),
			},
		},
		{
			intra: [2]protoRow{{.9, .9, 2.3}, {.8, .8, 2.1}}, net: [2]protoRow{{10.5, 10.5, 25}, {9.5, 9.5, 320}},
			ratio: [2][2]protoRow{{{.06, .06, .11}, {.08, .08, 1}}, {{.06, .06, .59}, {.08, .08, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL5, treeLL5, treeSimple5),
				byProto(ringLL5, ringLL5, ".1x22,.7,.2,1x3"),
			},
		},
	}
	six := list[5]
	six.factor = [2][nProtos][rcclSizes]float32{
		byProto(treeLL5, ".1x6,1x5,.6,1,.9,1x5,2x2,1,.1,.9x2,.1x2", ".1x15,.7,1,.1x5,.7,.15,.6,.7,.6"),
		byProto(ringLL5, ".1x11,1,.2,1,.4x2,.1,.2,.1x4,5.5,.1x2,1x2", ".1x20,.9,.1,1,.1,.6,1x2"),
	}
	return append(list, six)
})

// tuningOf is the table of a release: before 2.26 MI300X had no LL128 and other factors.
func (r *RCCL) tuningOf(v Version) *rcclTuning {
	t := rcclTables()[r.Tuning]
	if r.Tuning == 5 && !v.From(26) {
		t.factor[0][Simple], t.factor[1][Simple] = factors(".1x15,.7,1x10,.8"), factors(".1x23,.8,1x3")
		t.intra[0][LL128], t.intra[1][LL128], t.net[0][LL128], t.net[1][LL128] = 0, 0, 0, 0
		for i := range t.ratio {
			t.ratio[i][0][LL128], t.ratio[i][1][LL128] = 0, 0
		}
	}
	return &t
}
