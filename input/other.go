package input

import (
	_ "embed" // for the texts
	"regexp"
	"strings"

	"busbar.dev/input/trainlog"
	"busbar.dev/internal/csvtable"
)

// Named is the error for a text that busbar knows but that holds no topology.
type Named struct{ Name, What string }

func (n Named) Error() string        { return n.Name + ": " + ErrUnknown.Error() + ": this is " + n.What }
func (n Named) Is(target error) bool { return target == ErrUnknown }

// otherwise names such a text, by its beginning, or by the end of a training's log, and says what does.
func otherwise(data []byte) string {
	end := data[max(len(data)-1<<16, 0):]
	data = data[:min(len(data), 1<<16)]
	for _, o := range otherTexts() {
		if regexp.MustCompile(o.Pattern).Match(data) {
			return o.Is
		}
	}
	for _, k := range Find(data, ^Part) {
		if reads := map[bool]string{true: "hang", false: "doctor"}[k.Class&(Dump|State) != 0]; k.Class&Part == 0 {
			return "text of the kind " + k.Name + ", which busbar " + reads + " reads; it does not say how a cluster is built"
		}
	}
	var training trainlog.Log
	for line := range strings.Lines(string(end)) {
		training.Take(line)
	}
	if r := training.Run(); r != nil && !r.Bar {
		return "the log of a training, whose steps busbar doctor judges; it does not say how a cluster is built"
	}
	return ""
}

//go:embed others.csv
var otherTable string

type otherText struct {
	Is      string `csv:"is"`
	Pattern string `csv:"pattern"`
}

var otherTexts = csvtable.Once[otherText]("others.csv", otherTable)
