package web

import (
	"maps"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// buckets limit how often each client may do something: so many at once, so many a
// second after.
type buckets struct {
	rate  rate.Limit
	burst int

	mu   sync.Mutex // guards following
	each map[string]*rate.Limiter
}

// maxClients bounds what is remembered; whoever has not asked for long is as good as
// new and is forgotten first.
const maxClients = 4096

func newBuckets(perSecond rate.Limit, burst int) *buckets {
	return &buckets{rate: perSecond, burst: burst, each: map[string]*rate.Limiter{}}
}

// take reports whether a client may, and counts it.
func (b *buckets) take(client string) bool { return b.takeAt(client, time.Now()) }

func (b *buckets) takeAt(client string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.each[client]
	if l == nil {
		if len(b.each) >= maxClients {
			maps.DeleteFunc(b.each, func(_ string, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(b.burst) })
		}
		if len(b.each) >= maxClients {
			return false
		}
		l = rate.NewLimiter(b.rate, b.burst)
		b.each[client] = l
	}
	return l.AllowN(now, 1)
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
