package calibrate

import (
	"context"

	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
)

// Ablated is how far off runs are, each cluster and each source left out, without a mechanism of the model. The figures are fitted anew.
type Ablated struct {
	Name, Meaning string
	// Clusters and Sources are the scores where whole clusters and whole sources were left out.
	Clusters, Sources truth.RunScore
	Choices           truth.Choices // with clusters left out
	SourceChoices     truth.Choices
}

// Ablate fits runs with everything, which is the first row, and without each mechanism. Only those that count are scored; the others
// inform the fit. done is told of every row.
func Ablate(ctx context.Context, runs []*truth.Training, counts func(*truth.RunRow) bool, done func(*Ablated)) ([]Ablated, error) {
	list := []Ablated{{Meaning: "the model as it is"}}
	if err := list[0].score(runs, counts); err != nil {
		return nil, err
	}
	done(&list[0])
	for _, m := range truth.Mechanisms() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := Ablated{Name: m.Name, Meaning: m.Meaning}
		if err := a.score(truth.Without(runs, &m), counts); err != nil {
			return nil, err
		}
		done(&a)
		list = append(list, a)
	}
	return list, nil
}

func (a *Ablated) score(runs []*truth.Training, counts func(*truth.RunRow) bool) error {
	rows, _ := truth.PredictRuns(runs, step.Guess())
	fit, err := FitSteps(rows, step.Guess())
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name    func(*truth.RunRow) string
		to      *truth.RunScore
		choices *truth.Choices
	}{{BySource, &a.Sources, &a.SourceChoices}, {ByCluster, &a.Clusters, &a.Choices}} {
		if err := fit.Cross(x.name); err != nil {
			return err
		}
		var scored []*truth.RunRow
		for _, r := range rows {
			if counts(r) {
				scored = append(scored, r)
			}
		}
		*x.to, *x.choices = truth.RateRuns(a.Name, scored), truth.RateChoices(scored)
	}
	return nil
}
