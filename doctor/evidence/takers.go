package evidence

import (
	_ "embed" // for the tables
	"strings"

	"busbar.dev/internal/csvtable"
)

//go:embed lines.csv
var lineTable string

//go:embed warnings.csv
var warningTable string

// takers are what makes arguments of a pattern's groups, by their names in lines.csv.
var takers = map[string]func(groups []string) ([]string, bool){
	"acs": acs, "adapters": adapters, "address": address, "anyGroup": anyGroup, "asyncError": asyncError,
	"completion": completion, "connectError": connectError, "counter": counter, "crash": crash, "degraded": degraded,
	"expired": expired, "fabricHealth": fabricHealth, "fewWorkers": fewWorkers, "gid": gid, "gidClass": gidClass,
	"gidPair": gidPair, "hot": hot, "interfaces": interfaces, "iommuMode": iommuMode, "launched": launched,
	"loneRing": loneRing, "lowered": lowered, "manyWorkers": manyWorkers, "memlock": memlock, "mtus": mtus,
	"noInterface": noInterface, "none": none, "nvls": nvls, "objects": objects, "outOfMemory": outOfMemory,
	"overNet": overNet, "overP2P": overP2P, "peer": peer, "proxy": proxy, "seconds": seconds, "shapeOf": shapeOf,
	"shmFailure": shmFailure, "shmSize": shmSize, "sizes": sizes, "slurmError": slurmError, "unhandled": unhandled,
	"unmet": unmet, "unresolved": unresolved, "upper": upper, "verbs": verbs, "verdict": verdict,
}

// seenLines are the rows of lines.csv.
func seenLines() (list []seen) {
	for _, r := range csvtable.Must[struct {
		Sees    string `csv:"sees"`
		Words   string `csv:"words"`
		Also    string `csv:"also,optional"`
		Pattern string `csv:"pattern,optional"`
		Takes   string `csv:"takes,optional"`
	}]("lines.csv", lineTable) {
		kind, _, _ := strings.Cut(r.Sees, "/")
		list = append(list, seen{
			kind: Kind(kind), words: r.Words, also: r.Also, pattern: r.Pattern, take: takers[r.Takes],
		})
	}
	return list
}

// seenHarmless are warnings of NCCL that prove nothing by themselves.
func seenHarmless() (list []seen) {
	for _, w := range csvtable.Must[struct {
		Says   string `csv:"says"`
		Words  string `csv:"words"`
		Source string `csv:"source"`
	}]("warnings.csv", warningTable) {
		list = append(list, seen{
			kind: KnownWarning, words: w.Words,
			take: func(g []string) ([]string, bool) { return []string{w.Says}, strings.Contains(g[0], "NCCL WARN") },
		})
	}
	return list
}
