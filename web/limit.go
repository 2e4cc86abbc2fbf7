package web

import (
	"net"
	"sync"
	"time"
)

// buckets limit how often each client may do something: so many at once, so many a
// second after.
type buckets struct {
	rate  float64 // a second
	burst float64

	mu   sync.Mutex
	each map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// maxClients bounds what is remembered; whoever has not asked for long is as good as
// new and is forgotten first.
const maxClients = 4096

func newBuckets(rate, burst float64) *buckets {
	return &buckets{rate: rate, burst: burst, each: map[string]bucket{}}
}

// take reports whether a client may, and counts it.
func (b *buckets) take(client string) bool { return b.takeAt(client, time.Now()) }

func (b *buckets) takeAt(client string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.each[client]
	switch {
	case !ok && len(b.each) >= maxClients:
		b.forget(now)
		if len(b.each) >= maxClients {
			return false
		}
		fallthrough
	case !ok:
		x = bucket{b.burst, now}
	}
	x.left = min(b.burst, x.left+now.Sub(x.at).Seconds()*b.rate)
	x.at = now
	may := x.left >= 1
	if may {
		x.left--
	}
	b.each[client] = x
	return may
}

// forget drops clients whose buckets are full again.
func (b *buckets) forget(now time.Time) {
	for k, x := range b.each {
		if x.left+now.Sub(x.at).Seconds()*b.rate >= b.burst {
			delete(b.each, k)
		}
	}
}

// clientOf is whom limits are counted for: an address, and for IPv6 the network that
// one customer has.
func clientOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}
