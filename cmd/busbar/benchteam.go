package main

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/engine"
)

// team is the ranks that measure, as far as what is printed needs to know them.
type team interface {
	Rank() int
	Size() int
	Members() []engine.Member
	Hosts() []string
	Transport() engine.Transport
	Refused() map[engine.Refusal]int64
}

// crew is the members of an elastic job in one of its epochs.
type crew struct {
	*engine.Elastic
	v engine.View
}

func (c *crew) Rank() int                { return c.v.Rank }
func (c *crew) Size() int                { return c.v.Size }
func (c *crew) Members() []engine.Member { return c.v.Members }

func (c *crew) Hosts() (list []string) {
	for _, m := range c.v.Members {
		if !slices.Contains(list, m.Host) {
			list = append(list, m.Host)
		}
	}
	return list
}

// changeLine names who left and who joined, for the table.
func changeLine(c engine.Change) string { return "# " + strings.ReplaceAll(fmt.Sprint(c), "\n", " ") }
