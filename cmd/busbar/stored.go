package main

import (
	"bytes"
	"fmt"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
)

// stored are the sweeps of a file of kept results.
func (c *calibrateCmd) stored(e *env, name string, data []byte) (result.Sweeps, error) {
	all, err := result.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	list, left, err := truth.Kept(all, c.Layout)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, l := range left {
		reasons = append(reasons, fmt.Sprintf("%d records %s", l.Points, l.Reason))
	}
	if len(list) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: nothing to calibrate with: %s", name, strings.Join(reasons, "; "))
	}
	for _, r := range reasons {
		c.note(e, "%s: left out: %s", name, r)
	}
	for _, s := range list {
		if err := c.agrees(fmt.Sprintf("%s:%d", name, s.Line), s); err != nil {
			return nil, err
		}
	}
	return list, nil
}
