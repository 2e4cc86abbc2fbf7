package query

import (
	"bytes"
	"errors"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
)

// readCopy reads a cluster's written form: what is assumed of a copy does not change the caller's.
func readCopy(b *cluster.Budget, name string, c *cluster.Cluster) ([]*cluster.Fragment, error) {
	if err := checkValue(c); err != nil {
		return nil, fmt.Errorf("Env.Clusters[%q]: %w", name, err)
	}
	var text bytes.Buffer
	if err := clusterfile.Write(&text, c); err != nil {
		return nil, fmt.Errorf("Env.Clusters[%q]: %w", name, err)
	}
	return readAll(b, name, &text)
}

// checkValue refuses a cluster that was assembled wrongly, in words of the value: a reader of its written form would speak of lines.
func checkValue(c *cluster.Cluster) error {
	if c == nil {
		return errors.New("nil; expected a *cluster.Cluster, as LoadCluster gives it")
	}
	for i, t := range c.Types {
		if t == nil || len(t.Devices) == 0 {
			return fmt.Errorf("type %d has no devices; hardware.Node makes types", i)
		}
	}
	for _, h := range c.Hosts {
		if h.Type >= len(c.Types) {
			return fmt.Errorf("host %.60q: type %d of %d; expected an index of Types, or -1 where it is unknown", h.Name, h.Type, len(c.Types))
		}
	}
	return nil
}
