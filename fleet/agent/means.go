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

// meansTime is how long a node may take to find out: a driver that hangs must not keep it from joining.
const meansTime = 20 * time.Second

// means are what the node tells of its transports. A server asks none that has not said that it can: older agents would
// measure TCP.
func (a *agent) means(ctx context.Context) (list []fleet.Means) {
	for _, by := range slices.Sorted(maps.Keys(a.Means)) {
		within, cancel := context.WithTimeoutCause(ctx, meansTime, fmt.Errorf("no answer within %v", meansTime))
		m := fleet.Means{By: by}
		if err := a.Means[by](within); err != nil {
			m.Why = short(texttab.Clean(err.Error()), maxWords)
		}
		cancel()
		list = append(list, m)
	}
	return list
}
