package nccl

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

// rules is what releases of NCCL, and of RCCL, differ in: their constants, and which of their rules hold. The tables
// rules.csv and releases.csv have it, with the source of every row.
type rules struct {
	MaxChannels int   // of a communicator
	Algos       int   // how many of the algorithms there are
	Batch       int   // collectives in one work item of a kernel
	CellBytes   int64 // the least traffic that a channel gets
	LLTraffic   int64 // times that a byte counts in LL when data is cut into cells
	FusedPorts  int   // of a card, that become one NIC
	Steps       int   // of a search
	NVLSLeast   int   // GPUs for NVLS; 0: the release has none
	NVLSHeads   int   // at most; 0: no more than there are channels
	DirectHeads int   // of CollNetDirect, likewise
	DoubleBelow int   // channels of Hopper's rings between nodes are doubled where they are fewer
	PATLeast    int   // compute capability for PAT
	LL128CC     []int // compute capabilities that LL128 is allowed on
	// NVLSWidth is the channels of NVLS by one node or more and by architecture; 0: by the network's rate.
	NVLSWidth [2][4]int

	// Base and HW are latencies in µs: of a call, and of a step by hardware.
	Base [nAlgos]protoRow
	HW   [3][nAlgos]protoRow
	// Limits in GB/s by architecture and by one, two and more nodes: LL all channels together, whose rows 0 and 1 also
	// stand for Intel and AMD across nodes, the others a channel.
	LL, Ring128, Tree128, TreeBw, NVLSTreeBw [4][3]float64
	// NVLSEff is what NVLS reaches of its links, BusCap what one GPU was thought to move; 0: no bound.
	NVLSEff [4]float32
	BusCap  [4]float64
	// NVLink is what one NVLink carries one way, in GB/s, by architecture, then compute capability 8.6 and Pascal.
	NVLink  [6]float32
	AMDLink float32 // between NUMA domains of AMD's processors
	// Speeds are the bandwidths per channel that a search tries, by one node or more and by architecture.
	Speeds         [2][4][]float32
	TreeCorrection [nProtos][24]float32 // of the bandwidth of trees by size: 64 B, 128 B and so on
	Plateau        [4]float64           // how much longer a full ring's latency is than its steps
	LLShare        [2]float64           // of a ring's bandwidth, and where data is gathered on one node
	LL128Op        [nOps]float64        // GB/s per channel by collective; 0: by architecture
	// Shares of the bandwidth: LL128 where nodes have one rank, in trees between nodes, trees of the plain pattern, and
	// NVLS as an algorithm.
	LL128Lone, LL128Tree, TreeShare, PATShare, NVLSShare float64
	// factor of LL's steps inside nodes; µs of CollNetDirect by peer
	LLIntra, DirectStep float64

	// RCCL's tables of figures, by number, tree and ring, and protocol, and the sizes by which it overrides protocols.
	RCCL       [7][2][nProtos]rcclFigures
	RCCLRanges [7][nOps]protoRange

	// What a release does; rules.csv says what each means.
	AMDOneOrder, AMDPairs, C2C, C2CPath, CallLists, Cells, CrossAsked, CrossByNode, CrossPairs, CrossTwo         bool
	DirectGather, DistinctHeads, DoubleBlackwell, FP8Rings, FarNets, FusedXML, GDRByPath, GatherByNet            bool
	GatherWhole, HeadFromNet, InTurn, IntelModels, IntelPeers, KeepsRing, LL128Any, LL128Mixed, LL128NVB         bool
	LocalTurn, LoneTotal, LoneTree, MNNVL, MixedAsAMD, NVLSByLinks, NVLSCapped, NVLSGather, NVLSInter            bool
	NVLSModel, NVLSTreeCorrected, NVLSTrees, NearStart, NetOverhead, NetPeers, NetPeersByRate                    bool
	NetPeersHalved, OddCross, OnlyNeighbours, P2C, P2CNear, PXNFar, PairedRings, PathRange, PlateauByRank, ROCm7 bool
	PairsLL, RaisedRings, RingAcrossAll, RingBack, RingBackProto, ScatterNets, SearchKnown, SplitRings           bool
	SwitchOrder, TinyCorrected, TreeAnyOp, TreeThreads, TunerPlugins, VirtualNICs                                bool
}

//go:embed data/rules.csv
var rulesTable string

// change is a row of rules.csv: what a release changed.
type change struct {
	Rule   string `csv:"change"` // "2.18 Base tree": the release, the field, and the places in it
	Value  string `csv:"value"`  // numbers, 1x3 for 1 1 1, or true or false
	Source string `csv:"source"`
}

// rulesByMinor are the rules of every release: those of the one before with its changes.
var rulesByMinor = sync.OnceValue(func() map[int]*rules {
	changes := map[string][]change{}
	for _, c := range csvtable.Must[change]("nccl/data/rules.csv", rulesTable) {
		release, rule, _ := strings.Cut(c.Rule, " ")
		c.Rule = rule
		changes[release] = append(changes[release], c)
	}
	all := map[int]*rules{}
	var now rules
	for minor := Oldest.Minor; minor <= Newest.Minor; minor++ {
		for _, c := range changes["2."+strconv.Itoa(minor)] {
			now.change(c)
		}
		own := now
		all[minor] = &own
	}
	return all
})

// rules are those of the release, or of the nearest that is known.
func (v Version) rules() *rules {
	return rulesByMinor()[min(max(v.Minor, Oldest.Minor), Newest.Minor)]
}

// places are the words that changes name elements of arrays by.
var places = sync.OnceValue(func() map[string]int {
	m := map[string]int{
		"volta": volta, "ampere": ampere, "hopper": hopper, "blackwell": blackwell, "sm86": sm86, "pascal": pascal,
		"nvlink": hwNVLink, "pci": hwPCI, "net": hwNet, "intra": 0, "inter": 1,
	}
	for _, list := range [][]names{opNames, algoNames, protoNames} {
		for i, n := range list {
			m[n.ours] = i
		}
	}
	return m
})

// change makes a change of a release.
func (r *rules) change(c change) {
	words := strings.Fields(c.Rule)
	v := reflect.ValueOf(r).Elem().FieldByName(words[0])
	for _, w := range words[1:] {
		i, ok := places()[w]
		if !ok {
			i, _ = strconv.Atoi(w)
		}
		v = v.Index(i)
	}
	var values []string
	for _, w := range strings.Fields(c.Value) {
		value, times, _ := strings.Cut(w, "x")
		n, _ := strconv.Atoi(times)
		values = append(values, slices.Repeat([]string{value}, max(n, 1))...)
	}
	if rest := setNumbers(v, values); len(rest) > 0 {
		panic(fmt.Sprintf("nccl/data/rules.csv: %s: %d values too many", c.Rule, len(rest)))
	}
}

// setNumbers puts values into the numbers of a field in their order, and returns those that are left.
func setNumbers(v reflect.Value, values []string) []string {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), len(values), len(values)))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			values = setNumbers(v.Index(i), values)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			values = setNumbers(v.Field(i), values)
		}
	default:
		if _, err := fmt.Sscan(values[0], v.Addr().Interface()); err != nil {
			panic(fmt.Sprintf("nccl/data/rules.csv: %q: %v", values[0], err))
		}
		values = values[1:]
	}
	return values
}
