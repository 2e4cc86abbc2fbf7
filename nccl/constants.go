package nccl

// Kinds of hardware a latency belongs to.
const (
	hwNVLink = iota
	hwPCI
	hwNet
)

type protoRow [nProtos]float64

// latencyTable is base latencies and those per step, in µs (NCCL 2.28
// src/graph/tuning.cc, baseLatencies and hwLatencies).
type latencyTable struct {
	base [nAlgos]protoRow
	hw   [3][nAlgos]protoRow
}

// simple is a row of an algorithm that has the Simple protocol only.
func simple(us float64) protoRow { return protoRow{0, 0, us} }

// latencies is the table of a release.
func latencies(v Version) latencyTable {
	t := latencyTable{
		base: [nAlgos]protoRow{Tree: {6.8, 14, 8.4}, Ring: {6.6, 14, 8.4}, PAT: {8, 8, 8}},
		hw: [3][nAlgos]protoRow{
			hwNVLink: {
				Tree: {.6, 1.25, 4}, Ring: {.6, 1.9, 3.4}, CollNetDirect: simple(3.7), CollNetChain: simple(2.8),
				NVLS: simple(25), NVLSTree: simple(25), PAT: simple(4),
			},
			hwPCI: {
				Tree: {1, 1.9, 4}, Ring: {1, 2.5, 5.7}, CollNetDirect: simple(3.7), CollNetChain: simple(2.8), PAT: simple(4),
			},
			hwNet: {
				Tree: {5, 8.5, 14}, Ring: {2.7, 4, 14}, CollNetDirect: simple(31), CollNetChain: simple(30),
				NVLS: simple(18), NVLSTree: simple(20.9), PAT: simple(14),
			},
		},
	}
	if !v.From(28) {
		t.hw[hwNet][NVLSTree] = simple(14)
	}
	if !v.From(23) { // the price of Tree Simple was all per step
		t.base[Tree][Simple] = 0
		for hw := range t.hw {
			t.hw[hw][Tree][Simple] = 28
		}
	}
	if !v.From(21) {
		t.hw[hwNVLink][NVLS], t.hw[hwNVLink][NVLSTree] = simple(23), simple(23)
	}
	if !v.From(19) {
		t.base[CollNetDirect], t.base[CollNetChain] = protoRow{6.8, 14, 0}, protoRow{6.8, 14, 0}
		t.base[NVLS], t.base[NVLSTree] = simple(23), simple(23)
		t.hw[hwNVLink][Tree][Simple], t.hw[hwPCI][Tree][Simple], t.hw[hwNet][Tree][Simple] = 4, 6, 14
		t.hw[hwNVLink][CollNetDirect], t.hw[hwNVLink][CollNetChain] = simple(8), simple(4.75)
		t.hw[hwPCI][CollNetDirect], t.hw[hwPCI][CollNetChain] = simple(8), simple(8)
		t.hw[hwNet][CollNetDirect], t.hw[hwNet][CollNetChain] = simple(10.7), simple(14)
		t.hw[hwNVLink][NVLS], t.hw[hwNVLink][NVLSTree] = protoRow{}, protoRow{}
		t.hw[hwNet][NVLSTree] = simple(19)
	}
	if !v.From(18) {
		t.before18(v)
	}
	return t
}

// before18 is the table of NCCL 2.8 to 2.17 (src/graph/tuning.cc of those releases).
func (t *latencyTable) before18(v Version) {
	t.base[Tree], t.base[Ring] = protoRow{4.4, 4.4, 0}, protoRow{3.6, 10, 8.4}
	t.base[CollNetDirect], t.base[CollNetChain], t.base[NVLS] = protoRow{4.4, 4.4, 0}, protoRow{4.4, 4.4, 0}, simple(40)
	t.hw[hwNVLink][Tree], t.hw[hwNVLink][Ring] = protoRow{.52, 1.25, 28}, protoRow{.47, 1.9, 3.4}
	t.hw[hwPCI][Tree], t.hw[hwNet][Tree] = protoRow{1, 1.9, 28}, protoRow{5, 8.5, 28}
	t.hw[hwNet][Ring] = protoRow{2.7, 4, 9.6}
	if v.From(12) && !v.From(13) {
		t.hw[hwNet][Ring][Simple] = 28
	}
	for hw, us := range [3]float64{8, 8, 10.7} {
		t.hw[hw][CollNetDirect], t.hw[hw][CollNetChain] = simple(us), simple(us)
	}
}

// bwTable is limits in GB/s by architecture and by one, two and more nodes
// (NCCL 2.28 src/graph/tuning.cc, llMaxBws and perChMax…Bws).
type bwTable [4][3]float64

// limits are the caps of a release.
type limits struct {
	ll       bwTable    // LL, all channels together; rows 0 and 1 also stand for Intel and AMD across nodes
	ring128  bwTable    // Ring LL128 per channel
	tree128  bwTable    // Tree LL128 per channel
	tree     bwTable    // Tree per channel
	nvlsTree bwTable    // NVLSTree per channel, since 2.28
	nvlsEff  [4]float32 // what NVLS reaches of its links, since 2.28
}

func limitsOf(v Version) limits {
	l := limits{
		ll:      bwTable{volta: {39, 39, 20.4}, ampere: {87.7, 22.5, 19}, hopper: {141, 45, 35}, blackwell: {282, 90, 70}},
		ring128: bwTable{volta: {20, 20, 20}, ampere: {20, 20, 20}, hopper: {36.7, 36.7, 36.7}, blackwell: {40, 40, 40}},
		tree128: bwTable{volta: {20, 20, 20}, ampere: {20, 20, 20}, hopper: {36.7, 36.7, 29}, blackwell: {55.6, 31.67, 20}},
		tree: bwTable{
			volta: {26.5, 18.5, 10}, ampere: {24, 23.6, 17.8}, hopper: {38.7, 41.4, 36}, blackwell: {70, 42.8, 24},
		},
		nvlsTree: bwTable{volta: {26.5, 18.5, 10}, ampere: {24, 23.6, 17.8}, hopper: {0, 57.7, 45.5}, blackwell: {0, 96, 80}},
		nvlsEff:  [4]float32{hopper: 0.85, blackwell: 0.74},
	}
	if !v.From(30) {
		l.nvlsTree[blackwell][2] = 43.8
	}
	if !v.From(29) {
		l.ring128[blackwell] = [3]float64{2 * 36.7, 34.6, 2 * 36.7}
	}
	if !v.From(28) {
		l.ring128[blackwell] = [3]float64{2 * 36.7, 2 * 36.7, 2 * 36.7}
		l.tree128[blackwell] = [3]float64{2 * 36.7, 2 * 36.7, 2 * 29}
		l.tree[blackwell] = [3]float64{2 * 38.7, 2 * 41.4, 2 * 36}
	}
	if !v.From(21) {
		l.ll[hopper] = l.ll[ampere]
	}
	if !v.From(18) {
		l.tree[hopper][2] = 33
		l.tree128[hopper] = l.ring128[hopper]
	}
	if !v.From(17) {
		l.tree[hopper], l.ring128[hopper], l.tree128[hopper] = l.tree[ampere], l.ring128[ampere], l.tree128[ampere]
	}
	if !v.From(10) {
		l.tree[ampere] = [3]float64{24, 22.5, 16}
	}
	return l
}

// treeCorrection scales the bandwidth of trees by size: 64 B, 128 B and so on (NCCL
// 2.28 src/graph/tuning.cc, treeCorrectionFactor). The last is used since 2.29, by
// NVLSTree.
var treeCorrection = [nProtos][24]float32{
	LL:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
	LL128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
	Simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}
