package report

import (
	"fmt"

	"busbar.dev/cluster"
)

// deviceKey is what a page knows a device of a host by; empty where a node is drawn for its kind.
func deviceKey(host string, t *cluster.NodeType, d int) string {
	if host == "" {
		return ""
	}
	return "device/" + host + "/" + t.Devices[d].Name
}

// linkKey is what a page knows a link inside a host by.
func linkKey(host string, link int) string {
	if host == "" {
		return ""
	}
	return fmt.Sprintf("link/%s/%d", host, link)
}

// namesOf lists devices by their names in the model.
func namesOf(t *cluster.NodeType, ids []int) []string {
	out := make([]string, len(ids))
	for i, d := range ids {
		out[i] = t.Devices[d].Name
	}
	return out
}
