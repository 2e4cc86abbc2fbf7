package hub

import (
	"sync/atomic"
	"time"
)

// counts are what the hub did since it began, for its own metrics.
type counts struct {
	parts   [partEnded + 1]atomic.Int64 // by what became of them
	alerted atomic.Int64                // alerts that were delivered
	refused atomic.Int64                // and that nobody took
	unsent  atomic.Int64                // attempts to keep events that failed
	deaf    atomic.Int64                // seconds in which messages in passing were lost
	looks   atomic.Int64                // at the statistics
	lookNS  atomic.Int64                // what they took
}

func (c *counts) looked(took time.Duration) {
	c.looks.Add(1)
	c.lookNS.Add(int64(took))
}
