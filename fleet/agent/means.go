package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
)

// Means is how a node is measured by a transport.
type Means struct {
	// Lacks says why it cannot be measured, or nothing. It may take as long as a program takes that loads a driver.
	Lacks   func(ctx context.Context) error
	Measure Measurer
}

// meansTime is how long a node may take to find out; a server waits a little longer for an answer.
const meansTime = 4 * time.Second

// lacks says why the node cannot be measured by a transport, or nothing.
func (a *agent) lacks(ctx context.Context, by fleet.Transport) string {
	m, ok := a.Means[by]
	if !ok {
		return fmt.Sprintf("this agent does not measure by %s", by)
	}
	if err := m.Lacks(ctx); err != nil {
		return short(texttab.Clean(err.Error()), maxWords)
	}
	return ""
}

// means are what the node tells of its transports. A server asks none that has not said that it can: older agents would measure TCP.
func (a *agent) means(ctx context.Context) (list []fleet.Means) {
	for _, by := range slices.Sorted(maps.Keys(a.Means)) {
		list = append(list, fleet.Means{By: by, Why: a.lacks(ctx, by)})
	}
	return list
}
