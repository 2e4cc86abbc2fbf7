package bus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"busbar.dev/internal/test/eventually"
)

// TestIssuerOfAnAccount issues credentials the way one does for a cluster that somebody else
// runs: with a key of the account, and some credentials that tell which account it is.
func TestIssuerOfAnAccount(t *testing.T) {
	s, _ := open(t, ServerConfig{Dir: t.TempDir()})
	some, _, err := s.Keys().Issuer().Hub(0)
	if err != nil {
		t.Fatal(err)
	}
	x := newLine(t, strings.TrimPrefix(s.URL(), "nats://"))
	for name, key := range map[string]nkeys.KeyPair{
		"signing key": s.Keys().signer, "the account's own": s.Keys().account,
	} {
		seed, err := key.Seed()
		if err != nil {
			t.Fatal(err)
		}
		i, err := NewIssuer(append(seed, '\n'), some)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		creds, issued, err := i.Node("n", time.Hour)
		if err != nil || issued.Node != "n" || issued.Key == "" || issued.Expires.IsZero() {
			t.Fatalf("%s: %+v, %v", name, issued, err)
		}
		b, err := Connect(Config{URLs: []string{"nats://" + x.l.Addr().String()}, Node: "n", creds: creds})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
		if err := b.Publisher().Publish(ctx, left("n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		b.Close()
	}
	revokedAhead(t, s.Keys())
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := user.Seed()
	good, _ := s.Keys().signer.Seed()
	for name, c := range map[string][2][]byte{
		"a user's seed": {seed, some}, "no seed": {[]byte("SAAA"), some}, "no credentials": {good, []byte("x")},
		"nothing": {nil, nil},
	} {
		if _, err := NewIssuer(c[0], c[1]); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, _, err := s.Keys().Issue("no name", 0); err == nil {
		t.Error("credentials for what is no name")
	}
}

// revokedAhead withdraws credentials that were issued while the clock was ahead.
func revokedAhead(t *testing.T, k *Keys) {
	t.Helper()
	_, issued, err := k.Issue("ahead", 0)
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Now().Add(1000 * time.Hour).UTC().Truncate(time.Second)
	if err := k.change(func(all []Issued) ([]Issued, error) {
		for i := range all {
			if all[i].Key == issued.Key {
				all[i].At = ahead
			}
		}
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Revoke("ahead"); err != nil {
		t.Fatal(err)
	}
	a, _, err := k.claims()
	if err != nil {
		t.Fatal(err)
	}
	if !a.Revocations.IsRevoked(issued.Key, ahead.Add(time.Second)) {
		t.Error("credentials of a clock that was ahead are not withdrawn")
	}
}
