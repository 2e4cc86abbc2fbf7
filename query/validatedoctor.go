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

	Outcomes []doctor.Outcome `json:"-"`
}

// ValidateDoctorRow is one fault.
type ValidateDoctorRow struct {
	ID          string   `json:"id"`
	Category    string   `json:"category"`
	Wanted      []string `json:"wanted"` // findings that state the cause
	Said        []string `json:"said"`   // the first findings
	Hit         bool     `json:"hit"`
	Undecidable string   `json:"undecidable,omitempty"` // why nobody could tell from the evidence alone
}

// Run examines every fault and compares the findings with the cause.
func (q ValidateDoctor) Run(ctx context.Context, env Env) (*ValidateDoctorDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	data, err := env.measuredText(q.File)
	if err != nil {
		return nil, err
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
	}
	d.Outcomes = append(d.Outcomes, o)
	d.Rows = append(d.Rows, ValidateDoctorRow{o.Trial.ID, o.Trial.Category, orEmpty(o.Wanted), orEmpty(o.Said), o.Hit, o.Undecidable})
}
