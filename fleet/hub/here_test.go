package hub

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// here carries requests to handlers of this process without a connection: whoever waits for a connection keeps the
// time of a synctest bubble from passing.
var here = &handlers{}

type handlers struct{ byHost sync.Map }

func init() { hookClient.Transport = here }

// serve gives a handler an address for the time of a test.
func (x *handlers) serve(t *testing.T, h http.HandlerFunc) (url string) {
	host := fmt.Sprintf("%p.test", t)
	for i := 0; ; i++ { // a test may have several
		name := fmt.Sprintf("%d.%s", i, host)
		if _, taken := x.byHost.LoadOrStore(name, h); !taken {
			t.Cleanup(func() { x.byHost.Delete(name) })
			return "http://" + name
		}
	}
}

// RoundTrip answers a request.
func (x *handlers) RoundTrip(r *http.Request) (*http.Response, error) {
	h, ok := x.byHost.Load(r.URL.Host)
	if !ok {
		return http.DefaultTransport.RoundTrip(r)
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.(http.HandlerFunc)(w, r)
	return w.Result(), nil
}
