package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestStoreNotes has the store complain again and again.
func TestStoreNotes(t *testing.T) {
	var b strings.Builder
	now := time.Now()
	note := storeNotes(func(text string) { b.WriteString(text + "\n") }, func() time.Time { return now })
	for range 100 {
		note("JetStream out of storage resources, will be DISABLED")
		note("127.0.0.1:9 - cid:7 - authentication error")
	}
	if want := "the store: JetStream out of storage resources, will be DISABLED\n"; b.String() != want {
		t.Errorf("%q, expected %q", b.String(), want)
	}
	now = now.Add(time.Minute)
	for i := range 100 {
		note(fmt.Sprint("stream of things ", i))
	}
	if n := strings.Count(b.String(), "\n"); n != 33 {
		t.Errorf("%d lines", n)
	}
}
