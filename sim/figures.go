package sim

import (
	_ "embed"
	"fmt"
	"strings"

	"busbar.dev/internal/csvtable"
)

// Figures are what NCCL's time depends on beyond line rates. There are few, each with a physical meaning; their values
// were fitted on published sweeps (see docs/accuracy.md), and calibration replaces single ones for a machine.
type Figures [nFigures]float64

// Gen is a generation of GPUs, in the order of their figures.
type Gen int

// Generations.
const (
	Volta Gen = iota
	Ampere
	Hopper
	Blackwell
	nGens = 4
)

func (g Gen) String() string { return [nGens]string{"volta", "ampere", "hopper", "blackwell"}[g] }

// GenOf is the generation of a compute capability ×10. Cards between two
// generations count to the older one.
func GenOf(sm int) Gen {
	switch {
	case sm >= 100:
		return Blackwell
	case sm >= 90:
		return Hopper
	case sm >= 80:
		return Ampere
	}
	return Volta
}

// figure is one of the figures, in the order of the rows of figures.csv.
type figure int

const (
	// Every generation has its own of these, from Volta on.
	launch      figure = nGens * iota
	nvlinkShare figure = nGens * iota
	// Switches reduce from Hopper on.
	multiShare figure = nGens*iota - figure(Hopper)
)

// llHop is every generation's from Ampere on, which stands for those before it too.
const llHop = multiShare + nGens - figure(Ampere)

const (
	// All generations share these.
	multiHop = llHop + nGens + figure(iota)
	ll128Hop
	simpleHop
	llLane
	ll128Lane
	simpleLane
	earlyLane
	sliceTime
	rampTime
	rampOver
	cardHop
	llNet
	ll128Net
	simpleNet
	crowd
	ownWork
	lastStep
	treeLane
	treeSlice
	pairLaunch
	simpleStart
	switchTree
	rackShare
	cardLaunch
	hostIssue
	issueAMD
	graphLaunch
	pcieShare
	dmaShare
	shmShare
	hostRate
	bounceRate
	bounceEFA
	rdmaShare
	efaOldShare
	tcpxShare
	tcpRate
	sharedNIC
	roceLate
	efaLate
	tcpLate
	rcclLaunch
	rcclLL
	rcclSimple
	rcclRamp
	nFigures = int(iota) + int(llHop) + nGens
)

// Figure is what is known of one of the figures.
type Figure struct {
	Name       string  `csv:"name"` // hopper.launch, rdma_share
	Unit       string  `csv:"unit,optional"`
	Least      float64 `csv:"least"` // of its physical range
	Most       float64 `csv:"most"`
	Usual      float64 `csv:"usual"` // a round value of the right size, and how firmly a fit holds to it
	Firm       float64 `csv:"firm"`
	Value      float64 `csv:"value"`
	Machines   int     `csv:"machines"` // of published sweeps that feel it, and who published them
	Publishers int     `csv:"publishers"`
	Meaning    string  `csv:"meaning"`
}

//go:embed figures.csv
var figuresTable string

var figureRows = csvtable.Once[Figure]("sim/figures.csv", figuresTable)

// FigureTable is what is known of all figures, in their order.
func FigureTable() []Figure { return figureRows() }

// gen is a figure of a generation.
func (f *Figures) gen(g Gen, k figure) float64 { return f[int(k)+int(g)] }

// all is a figure that all generations share.
func (f *Figures) all(k figure) float64 { return f[k] }

// FigureByName finds a figure.
func FigureByName(name string) (int, error) {
	for i, x := range figureRows() {
		if strings.EqualFold(x.Name, name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no figure %.60q", name)
}

// Fitted are the figures as fitted on published sweeps.
func Fitted() *Figures {
	f := &Figures{}
	for i, x := range figureRows() {
		f[i] = x.Value
	}
	return f
}
