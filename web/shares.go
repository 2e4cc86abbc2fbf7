package web

import "sync"

// shares counts what clients hold of something that there is only so much of.
type shares struct {
	most, ofOne int64
	always      bool // a client that holds nothing gets its first, whatever it takes

	mu   sync.Mutex // guards following
	all  int64
	each map[string]int64
}

func newShares(most, ofOne int64) *shares {
	return &shares{most: most, ofOne: ofOne, each: map[string]int64{}}
}

// take is false where there is too much, of this client or of all.
func (s *shares) take(client string, n int64) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.each[client]
	if (have > 0 || !s.always) && (have+n > s.ofOne || s.all+n > s.most) {
		return nil, false
	}
	s.all += n
	s.each[client] = have + n
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all -= n
		if s.each[client] -= n; s.each[client] == 0 {
			delete(s.each, client)
		}
	}, true
}
