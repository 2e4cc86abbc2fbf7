package engine_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// TestOtherVersion: a rank that finds one of another version ends at once, and says which both are.
func TestOtherVersion(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(append([]byte("busbar\x00\x63"), make([]byte, 32)...))
			defer c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	_, err = engine.Join(ctx, engine.Config{Rank: 1, Size: 2, Meet: l.Addr().String(), Secret: "s"})
	if err == nil || !strings.Contains(err.Error(), "version 99 of the protocol") || ctx.Err() != nil {
		t.Errorf("it ended with %v", err)
	}
}
