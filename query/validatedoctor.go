package query

import (
	"bytes"
	"context"
	"fmt"

	"busbar.dev/doctor"
	"busbar.dev/doctor/evidence"
)

// ValidateDoctor asks how often the doctor finds the cause of faults whose cause is known.
type ValidateDoctor struct {
	File  string `arg:"" name:"file" names:"file" help:"Faults with evidence and cause, one JSON object per line; - for standard input."`
	Class string `placeholder:"NAME" help:"Only faults of this category."`
}

// ValidateDoctorDoc is the answer to ValidateDoctor.
type ValidateDoctorDoc struct {
	Cases     int                 `json:"cases"`
	Decidable int                 `json:"decidable"` // from their evidence
	Hits      int                 `json:"hits"`      // decidable cases whose cause is among the first two findings
	Rows      []ValidateDoctorRow `json:"rows"`
	Share     float64             `json:"share"` // of hits in the decidable ones
	First     int                 `json:"first"` // decidable cases whose cause is the first finding
	Three     int                 `json:"three"` // among the first three

	// Of threads, whose cause is known by name: how sure the doctor was, and how often that was right.
	Threads *ThreadsDoc `json:"threads,omitempty"`

	Outcomes []doctor.Outcome `json:"-"`
}

// ThreadsDoc is how well the causes of threads are named.
type ThreadsDoc struct {
	Wrong       int              `json:"wrong_but_sure"` // wrong with a confidence of half or more
	Unknown     int              `json:"unknown"`        // answered by: unknown
	Nameless    int              `json:"nameless"`       // whose cause is none of the program's
	Reliability []ReliabilityRow `json:"reliability"`
	// Early is the same with what reports held before the diagnosis only.
	EarlyFirst int `json:"early_first"`
	EarlyThree int `json:"early_three"`
	EarlyWrong int `json:"early_wrong_but_sure"`

	Outcomes []doctor.ThreadOutcome `json:"-"`
}

// ReliabilityRow is a fifth of the scale of confidence.
type ReliabilityRow struct {
	Said       int     `json:"said"`
	Confidence float64 `json:"confidence"` // mean
	Right      float64 `json:"right"`      // share
}

// ValidateDoctorRow is one fault.
type ValidateDoctorRow struct {
	ID          string   `json:"id"`
	Category    string   `json:"category"`
	Wanted      []string `json:"wanted"` // findings that state the cause
	Said        []string `json:"said"`   // the first findings
	Hit         bool     `json:"hit"`
	Undecidable string   `json:"undecidable,omitempty"` // why the evidence alone cannot tell
}

// Run examines every fault and compares the findings with the cause.
func (q ValidateDoctor) Run(ctx context.Context, env Env) (doc *ValidateDoctorDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	data, err := env.measuredText(q.File)
	if err != nil {
		return nil, err
	}
	if doctor.MatchThreads(data) {
		return validateThreads(inputName(q.File), data)
	}
	list, err := doctor.ReadTrials(inputName(q.File), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	d := &ValidateDoctorDoc{Rows: []ValidateDoctorRow{}}
	vocabulary := evidence.NewVocabulary()
	for i := range list {
		if q.Class != "" && q.Class != list[i].Category {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := doctor.Try(vocabulary, &list[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].ID, err)
		}
		d.add(o)
	}
	if d.Cases == 0 {
		return nil, fmt.Errorf("%s: no cases of class %q in it", inputName(q.File), q.Class)
	}
	d.Share = float64(d.Hits) / float64(max(d.Decidable, 1))
	return d, nil
}

func (d *ValidateDoctorDoc) add(o doctor.Outcome) {
	d.Cases++
	if o.Undecidable == "" {
		d.Decidable++
		if o.Hit {
			d.Hits++
		}
		if o.Place == 1 {
			d.First++
		}
		if o.Place >= 1 && o.Place <= 3 {
			d.Three++
		}
	}
	d.Outcomes = append(d.Outcomes, o)
	d.Rows = append(d.Rows, ValidateDoctorRow{
		o.Trial.ID, o.Trial.Category, orEmpty(o.Wanted), orEmpty(o.Said), o.Hit, o.Undecidable,
	})
}

// validateThreads scores threads by the cause they name.
func validateThreads(name string, data []byte) (*ValidateDoctorDoc, error) {
	list, err := doctor.ReadThreads(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	score, outcomes, err := doctor.ScoreThreads(list, false)
	if err != nil {
		return nil, err
	}
	early, _, err := doctor.ScoreThreads(list, true)
	if err != nil {
		return nil, err
	}
	t := &ThreadsDoc{
		Wrong: score.Wrong, Unknown: score.Unknown, EarlyFirst: early.First, EarlyThree: early.Three, EarlyWrong: early.Wrong,
		Outcomes: outcomes,
	}
	d := &ValidateDoctorDoc{
		Cases: score.Threads, Decidable: score.Threads, First: score.First, Three: score.Three, Rows: []ValidateDoctorRow{},
		Threads: t,
	}
	for _, b := range score.Bins {
		if b.Said > 0 {
			t.Reliability = append(t.Reliability, ReliabilityRow{
				b.Said, b.Confidence / float64(b.Said), float64(b.Right) / float64(b.Said),
			})
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if len(o.Wanted) == 0 {
			t.Nameless++
		}
		if o.Place == 1 || o.Place == 2 {
			d.Hits++
		}
		d.Rows = append(d.Rows, ValidateDoctorRow{
			o.Thread.ID, o.Thread.CauseKey, orEmpty(o.Wanted), orEmpty(o.Said), o.Place == 1, "",
		})
	}
	d.Share = float64(d.Hits) / float64(max(d.Cases, 1))
	return d, nil
}
