package doctor

import (
	_ "embed"
	"sync"

	"busbar.dev/internal/csvtable"
)

// Tables of the package: what operators ask of a machine, what lowers a peak, and which findings state the causes of trials.
var (
	//go:embed thresholds.csv
	thresholdTable string
	//go:embed mechanisms.csv
	mechanismTable string
	//go:embed wanted.csv
	wantedTable string
)

// wantedRow says which findings state the cause of a category of trials, or beside that of one trial, because its own words name them; or why the
// evidence of a trial leaves its cause open.
type wantedRow struct {
	Name        string   `csv:"name"`
	Findings    []string `csv:"findings,optional"`
	Undecidable string   `csv:"undecidable,optional"`
}

var wantedRows = sync.OnceValue(func() map[string]wantedRow {
	list := map[string]wantedRow{}
	for _, r := range csvtable.Must[wantedRow]("wanted.csv", wantedTable) {
		list[r.Name] = r
	}
	return list
})

// wanted are the findings that state the cause of a trial.
func wanted(t *Trial) []string {
	list := wantedRows()[t.Category].Findings
	return append(list[:len(list):len(list)], wantedRows()[t.ID].Findings...)
}
