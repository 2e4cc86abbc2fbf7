package query

import (
	"fmt"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
)

// StepScore is how far off training steps are: the error of runs, of clusters on average, how many are inside their bars, and how many
// pairs of settings of one job come in the measured order.
type StepScore struct {
	Runs     int              `json:"runs"`
	Median   float64          `json:"median_ape"`
	P90      float64          `json:"p90_ape"`
	Coverage float64          `json:"coverage"`
	Clusters ValidateMachines `json:"cluster_mean"`
	Pairs    int              `json:"pairs"`
	Right    int              `json:"pairs_in_order"`
}

func newStepScore(s *truth.RunScore, c truth.Choices) StepScore {
	return StepScore{s.Points, s.Median, s.P90, s.Covered, ValidateMachines{s.Clusters, s.ClusterMedian, s.ClusterP90, s.ClusterCovered}, c.Pairs, c.Right}
}

// ValidateLeft is the score of a file's training runs where everything of one cluster, publisher or GPU is left out of the fit at a time.
type ValidateLeft struct {
	File string `json:"file"`
	Left string `json:"left_out"` // nothing, clusters, publishers, gpus
	StepScore
}

// crossSteps predicts training runs by figures fitted without their cluster, their publisher and their GPU. The document's rows are those of clusters
// left out, or of publishers.
func (q *CrossValidate) crossSteps(env *Env, runs []*truth.Training) (*ValidateDoc, error) {
	defer env.working("fitting the figures of training steps")()
	if q.Without != "" {
		var err error
		if runs, err = withoutMechanism(runs, q.Without); err != nil {
			return nil, err
		}
	}
	file := map[string]string{}
	for _, name := range q.Files {
		list, err := env.trainingRuns([]string{name})
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			file[r.ID] = inputName(name)
		}
	}
	rows, left := truth.PredictRuns(runs, step.Guess())
	fit, err := calibrate.FitSteps(rows, step.Guess())
	if err != nil {
		return nil, err
	}
	var scores []ValidateLeft
	score := func(what string) {
		for _, name := range q.Files {
			var mine []*truth.RunRow
			for _, r := range rows {
				if file[r.ID] == inputName(name) {
					mine = append(mine, r)
				}
			}
			s := truth.RateRuns("", mine)
			scores = append(scores, ValidateLeft{inputName(name), what, newStepScore(&s, truth.RateChoices(mine))})
		}
	}
	for _, r := range rows {
		if err := r.Predict(&fit.Figures); err != nil {
			return nil, err
		}
	}
	score("nothing")
	order := []leaving{{"gpus", calibrate.ByGPU}, {"publishers", calibrate.BySource}, {"clusters", calibrate.ByCluster}}
	if q.Publishers {
		order[1], order[2] = order[2], order[1]
	}
	for _, x := range order { // the last one's rows are the document's
		if err := fit.Cross(x.by); err != nil {
			return nil, err
		}
		score(x.what)
	}
	d := newValidateDoc(&ValidatePoints{}, newValidateRuns(rows, left))
	d.LeftOut, d.Training.Fit = scores, fit
	return d, nil
}

// leaving is what is left out of a fit at a time.
type leaving struct {
	what string
	by   func(*truth.RunRow) string
}

// withoutMechanism are runs read without one.
func withoutMechanism(runs []*truth.Training, name string) ([]*truth.Training, error) {
	var known []string
	for _, m := range truth.Mechanisms() {
		if m.Name == name {
			return truth.Without(runs, &m), nil
		}
		known = append(known, m.Name)
	}
	return nil, fmt.Errorf("--without %q: training steps have no such mechanism; expected one of %v", name, known)
}
