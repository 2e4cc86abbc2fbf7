package engine

// UnderWay is the number of buckets that were started and have not ended.
func (b *Buckets) UnderWay() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.started {
		if b.list[k].call.busy.Load() {
			n++
		}
	}
	return n
}
