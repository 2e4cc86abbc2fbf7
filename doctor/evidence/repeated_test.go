package evidence

import (
	"fmt"
	"strings"
	"testing"
)

// Messages in which nothing was recognised are not looked at again; those that tell something are counted for every
// rank.
func TestRepeatedMessages(t *testing.T) {
	var b strings.Builder
	for i := range 2 * maxTalk {
		fmt.Fprintf(&b, "n%d:1:1 [0] NCCL INFO comm is about to do something that nobody knows\n", i%7)
	}
	for i := range 5 {
		fmt.Fprintf(&b, "n%d:1:1 [0] x.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n", i)
	}
	r := NewReader()
	if err := r.Read("x.log", strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	s, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Count(VerbsFailure); n != 5 {
		t.Errorf("%d failures counted, want 5", n)
	}
}
