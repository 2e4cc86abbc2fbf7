package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/unit"
)

// tunedDoc is the first plan under busbar's tuner plugin for NCCL, in the document of --json.
type tunedDoc struct {
	Step    unit.Span   `json:"step_s"`
	Choices []choiceDoc `json:"choices"`
}

type choiceDoc struct {
	Group string     `json:"group"`
	Op    string     `json:"op"`
	Bytes unit.Bytes `json:"bytes"`
	Algo  string     `json:"algo"`
	Proto string     `json:"proto"`
	Own   string     `json:"nccl_algo"`
	OwnP  string     `json:"nccl_proto"`
	Gain  float64    `json:"times_as_fast"`
}

func (p *planned) tunedDoc() *tunedDoc {
	if p.tuned == nil {
		return nil
	}
	d := &tunedDoc{Step: p.tuned.Step, Choices: []choiceDoc{}}
	for _, c := range p.tuned.Choices {
		d.Choices = append(d.Choices, choiceDoc{c.Group.String(), c.Kind.String(), c.Bytes, c.Best.Algo, c.Best.Proto, c.Own.Algo, c.Own.Proto, float64(c.Was / c.Is)})
	}
	return d
}

// mostChoices is how many are printed.
const mostChoices = 3

// printTuned says what a tuner would choose otherwise than NCCL, and what that brings.
func (p *planned) printTuned(w io.Writer) {
	if p.tuned == nil || p.rows[0].Comm == 0 {
		return
	}
	list := p.tuned.Choices
	if len(list) == 0 {
		fmt.Fprintln(w, "NCCL's own choices of algorithm and protocol are the best for the first's collectives, to 5%")
		return
	}
	var words []string
	for i, c := range list {
		if k := i - 1; k >= 0 && list[k].Group == c.Group && list[k].Kind == c.Kind && list[k].Best == c.Best {
			continue // sizes beside each other
		}
		if len(words) == mostChoices {
			words = append(words, "and others")
			break
		}
		words = append(words, c.String())
	}
	what := "under busbar's tuner plugin (--emit writes it) the first would take " + seconds(p.tuned.Step)
	if p.query.Tuned {
		what = "chosen by the tuner plugin (--emit writes it) for the first"
	} else if gain := p.rows[0].Step/p.tuned.Step - 1; gain >= 0.001 {
		what += fmt.Sprintf(", %.1f%% more tokens a second", 100*gain)
	} else {
		what += ", which is no gain: computing hides them"
	}
	fmt.Fprintf(w, "%s: %s\n", what, strings.Join(words, "; "))
}
