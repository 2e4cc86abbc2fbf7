package input

import (
	"bytes"
	_ "embed" // for the texts
	"strings"
	"sync"

	"busbar.dev/input/trainlog"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
)

// Named is the error for a text that busbar knows but that holds no topology.
type Named struct{ Name, What string }

func (n Named) Error() string        { return n.Name + ": " + ErrUnknown.Error() + ": this is " + n.What }
func (n Named) Is(target error) bool { return target == ErrUnknown }

// otherwise names such a text, by its beginning, or by the end of a training's log, and says what does.
func otherwise(data []byte) string {
	end := data[max(len(data)-1<<16, 0):]
	data = data[:min(len(data), 1<<16)]
	for line := range bytes.Lines(data) { // to which an expression is anchored, which costs a tenth
		for _, o := range otherTexts() {
			if o.re.Match(line) {
				return o.Is
			}
		}
	}
	for _, k := range Find(data, ^Part) {
		if k.Class&Part == 0 {
			return "text of the kind " + k.Name + ", which busbar doctor reads; it does not say how a cluster is built"
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

	re *lazyre.Regexp
}

var otherTexts = sync.OnceValue(func() []otherText {
	list := csvtable.Must[otherText]("others.csv", otherTable)
	for i := range list {
		list[i].re = lazyre.New(list[i].Pattern)
	}
	return list
})
