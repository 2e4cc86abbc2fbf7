package nccllog

import (
	_ "embed" // for the names
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

//go:embed virtual.csv
var virtualTable string

type virtualName struct {
	Prefix   string `csv:"prefix"`
	What     string `csv:"what"`
	Numbered bool   `csv:"numbered,optional"`
	Card     bool   `csv:"card,optional"`
	Source   string `csv:"source"`
}

var virtualNames = sync.OnceValue(func() []virtualName {
	return csvtable.Must[virtualName]("virtual.csv", virtualTable)
})

// virtual is the row of a name, an empty one where it is a card's as any other.
func virtual(name string) virtualName {
	for _, v := range virtualNames() {
		if rest, ok := strings.CutPrefix(name, v.Prefix); ok && (!v.Numbered || rest == "" || isDigits(rest[:1])) {
			return v
		}
	}
	return virtualName{Card: true}
}

// Virtual says what an interface is when its name tells that it leads nowhere; "" of all others.
func Virtual(name string) string { return virtual(name).What }
