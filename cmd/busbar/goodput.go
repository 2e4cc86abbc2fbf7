package main

import (
	"os"

	"busbar.dev/ask"
	"busbar.dev/fleet/client"
	"busbar.dev/query"
)

type goodputCmd struct {
	common
	query.Goodput
	Tokens string `placeholder:"N" help:"Tokens of the whole run, 300B or 15.6T: how long it takes."`
	query.Prices
	Nodes string `placeholder:"1-N" help:"On 1, 2, 4, … nodes up to N, or all: more GPUs fail more often."`
}

// Run answers the question and prints it.
func (c *goodputCmd) Run(e *env) error {
	q, question := ask.Named("goodput"), any(&c.Goodput)
	c.Failures.Goodput = true
	switch {
	case c.Nodes != "":
		q, question = ask.Named("scale"), &query.Scale{Job: c.Job, Failures: c.Failures, Nodes: c.Nodes}
	case c.Tokens+c.Price != "":
		q = ask.Named("step")
		question = &query.Step{
			Job: c.Job, Campaign: query.Campaign{Failures: c.Failures, Tokens: c.Tokens, Prices: c.Prices},
		}
	}
	if c.MTBF == "fleet" {
		e.server = client.New(client.Options{
			Server: os.Getenv("BUSBAR_SERVER"), CA: os.Getenv("BUSBAR_SERVER_CA"), Exec: e.kubectl,
		})
	}
	return e.answer(q, question, c.common, nil)
}
