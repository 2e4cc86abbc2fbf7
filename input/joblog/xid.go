package joblog

import (
	_ "embed" // for the catalogue

	"busbar.dev/internal/csvtable"
)

//go:embed xid.csv
var xidTable string

type xidRow struct {
	Code     int    `csv:"code"`
	Meaning  string `csv:"meaning"`
	Hardware bool   `csv:"hardware,optional"`
}

var xids = csvtable.Once[xidRow]("xid.csv", xidTable)

// XidMeaning is what NVIDIA's catalogue says about a code, and whether it is the hardware's fault: then the GPU needs
// somebody, and not only the program.
func XidMeaning(code int) (text string, hardware bool) {
	for _, x := range xids() {
		if x.Code == code {
			return x.Meaning, x.Hardware
		}
	}
	return "see NVIDIA's Xid catalogue", false
}
