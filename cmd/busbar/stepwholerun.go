package main

import (
	"fmt"

	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

// fails is the share of time that failures and checkpoints leave. least is the length of a step,
// which an interval is at least.
func (w *whole) fails(r *pricedStep, nodes int, least unit.Span, rate float64) (*campaign.Goodput, *goodputDoc, error) {
	d := &goodputDoc{Bytes: r.job.CheckpointBytes(), Sources: []string{}}
	cite := func(what, source string) { d.Sources = append(d.Sources, what+": "+source) }
	if w.interval > 0 && w.interval < least {
		return nil, nil, fmt.Errorf("--checkpoint-interval %v is shorter than a step of %v", w.interval, least)
	}
	f := campaign.Failures{Between: w.mtbf, Save: w.save, Interval: w.interval, Restart: w.restart}
	switch {
	case w.mtbf == 0:
		published := campaign.MTBF()
		cite("time between interruptions", published.Source)
		f.Between = published.Value / unit.Span(r.Ranks)
	case w.per == "gpu":
		f.Between /= unit.Span(r.Ranks)
	case w.per == "node":
		f.Between /= unit.Span(nodes)
	}
	if !w.saves || !w.restarts {
		storage := w.storage
		if storage == 0 {
			published := campaign.Storage()
			cite("storage", published.Source)
			storage = published.Value * unit.Rate(r.Ranks)
		}
		d.Storage = storage.GBps()
		io := d.Bytes.At(storage)
		if !w.saves {
			f.Save = io
		}
		if !w.restarts {
			published := campaign.Restarting()
			cite("restart, beside reading the checkpoint", published.Source)
			f.Restart = io + published.Value
		}
	}
	g, err := f.Goodput(least)
	if err != nil {
		return nil, nil, err
	}
	d.fill(&g, r.Ranks, rate)
	return &g, d, nil
}

// bill works out money and energy.
func (w *whole) bill(d *wholeDoc, run *campaign.Run, r *pricedStep) error {
	power, source := r.gpu.TDP, r.gpu.TDPSource
	if w.power > 0 {
		power, source = w.power, "--gpu-power"
	}
	known := power > 0
	if !known && w.energy.Currency != "" {
		return fmt.Errorf("what a %s draws is not in the catalogue; give --gpu-power", r.gpu.Title)
	}
	run.TDP = power
	step, million := run.Step(), run.Each(1e6)
	run.Currency = "USD"
	for _, c := range []string{w.rent.Currency, w.energy.Currency} {
		if c != "" {
			run.Currency = c
		}
	}
	d.Cost = &costDoc{
		Currency: run.Currency, Step: newBillDoc(step), Million: newBillDoc(million), Watts: float64(power), WattsSource: source, Overhead: w.overhead, money: w.money,
		Rented: w.rent.Currency != "", Powered: w.energy.Currency != "",
	}
	if known {
		d.Cost.Average = float64(step.Energy) / float64(step.Time) / float64(r.Ranks) / w.overhead
		d.Cost.Assumed = fmt.Sprintf("a GPU draws %.0f%% of %v while it computes, %.0f%% while it waits, %.0f%% while the job restarts", 100*campaign.Computing, power, 100*campaign.Waiting, 100*campaign.Idle)
	}
	if w.tokens > 0 {
		all := run.Lasting(w.tokens)
		b := newBillDoc(all)
		d.Run = &runDoc{Tokens: w.tokens, Days: float64(all.Time / unit.Day), GPUHours: float64(all.Time/unit.Hour) * float64(r.Ranks), MWh: all.Energy.MWh(), billDoc: b}
	}
	return nil
}
