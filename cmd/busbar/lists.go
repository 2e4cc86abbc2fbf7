package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

type presetsCmd struct {
	common
	query.Presets
}

// Help ends with an example.
func (presetsCmd) Help() string {
	return "A preset is a cluster by name, with an optional node count: dgx-h100:16.\n\nExample:\n  busbar presets\n  " +
		"busbar map baskerville:2"
}

// Run lists the presets.
func (c *presetsCmd) Run(e *env) error {
	doc, err := c.Presets.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Presets(e.stdout, doc, e.text(e.stdout, c.common))
}

type hardwareCmd struct {
	common
	query.Hardware
}

// Help ends with an example.
func (hardwareCmd) Help() string {
	return "-v prints the source below every row; --json has them too. Rates are one direction; the duplex rate is " +
		"printed too, and which of the two the vendor quotes. Peaks are dense.\n\nExample:\n  busbar hardware links\n  " +
		"busbar hardware gpu --json"
}

// Run lists the catalogue.
func (c *hardwareCmd) Run(e *env) error {
	doc, err := c.Hardware.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Hardware(e.stdout, doc, c.Verbose)
}

type modelsCmd struct {
	common
	query.Models
}

// Help ends with examples.
func (modelsCmd) Help() string {
	return "Lists the models that are known by name, with their dimensions and exact numbers of parameters; -v adds the " +
		"sources. With a name, its tensors in the order in which a framework registers them.\n\n" +
		"Examples:\n  busbar models\n  busbar models gpt2-large\n  busbar models llama3-8b --json"
}

// Run lists models, or the tensors of one.
func (c *modelsCmd) Run(e *env) error {
	doc, err := c.Models.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return report.JSON(e.stdout, doc)
	}
	return report.Models(e.stdout, doc, c.Verbose)
}
