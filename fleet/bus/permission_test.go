package bus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"

	"github.com/nats-io/nats.go"
)

// dial connects past package bus, as somebody would who wants more than that offers.
func (p *place) dial(creds []byte) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Timeout(eventually.Limit), nats.NoReconnect(), nats.CustomInboxPrefix("_INBOX.node.a"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // else it prints
	}
	if creds != nil {
		opts = append(opts, nats.UserCredentialBytes(creds))
	}
	return nats.Connect(strings.Join(p.urls, ","), opts...)
}

// refused tries one thing and reports whether the server refused it.
func refused(t *testing.T, nc *nats.Conn, verb, subject string) bool {
	t.Helper()
	before := nc.LastError()
	var err error
	var sub *nats.Subscription
	if verb == "sub" {
		if sub, err = nc.SubscribeSync(subject); err == nil {
			defer func() { _ = sub.Unsubscribe() }()
		}
	} else {
		err = nc.Publish(subject, []byte("x"))
	}
	if err != nil {
		t.Fatalf("%s %s: %v", verb, subject, err)
	}
	// The server's refusal comes before its answer to the flush.
	if err := nc.FlushTimeout(eventually.Limit); err != nil {
		t.Fatalf("%s %s: %v", verb, subject, err)
	}
	after := nc.LastError()
	return after != before && errors.Is(after, nats.ErrPermissionViolation)
}

// testPermissions tries every subject as a node whose subject it is, as another node, and as
// the fleet's server; and to get in without credentials that are good now.
func testPermissions(t *testing.T, p *place) {
	own, _, err := p.keys.Issue("a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := p.keys.Issue("a.b", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := p.keys.Hub()
	if err != nil {
		t.Fatal(err)
	}
	who := []string{"own", "other", "server"}
	var conns []*nats.Conn
	for _, c := range [][]byte{own, other, server} {
		nc, err := p.dial(c)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		conns = append(conns, nc)
	}
	const y, n = true, false
	for _, row := range []struct {
		verb, subject string
		may           [3]bool
	}{
		{"pub", fleet.LogOf("a"), [3]bool{n, n, y}},
		{"pub", publishTo + "a", [3]bool{y, n, n}},
		{"pub", lastTo + "a", [3]bool{y, n, n}},
		{"sub", publishTo + "a", [3]bool{n, n, y}},
		{"sub", publishTo + "*", [3]bool{n, n, y}},
		{"sub", lastTo + "*", [3]bool{n, n, y}},
		{"pub", fleet.BeatOf("a"), [3]bool{y, n, n}},
		{"pub", fleet.ProgressOf("a"), [3]bool{y, n, n}},
		{"pub", fleet.PartOf("a"), [3]bool{n, n, y}},
		{"pub", directGet + fleet.LogOf("a"), [3]bool{n, n, y}},
		{"pub", directGet + fleet.HubLog, [3]bool{n, n, y}},
		{"pub", fleet.HubLog, [3]bool{n, n, y}},
		{"pub", fleet.Log + "node.a.b", [3]bool{n, n, n}},
		{"pub", fleet.Log + "else", [3]bool{n, n, n}},
		{"pub", "$JS.API.INFO", [3]bool{n, n, y}},
		{"pub", "$JS.API.STREAM.INFO.BUSBAR", [3]bool{n, n, y}},
		{"pub", "$JS.API.STREAM.LIST", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.NAMES", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.CREATE.X", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.DELETE.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.PURGE.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.MSG.GET.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.MSG.DELETE.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.STREAM.SNAPSHOT.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.CONSUMER.LIST.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.API.CONSUMER.MSG.NEXT.BUSBAR.x", [3]bool{n, n, y}},
		{"pub", "$JS.API.DIRECT.GET.BUSBAR", [3]bool{n, n, n}},
		{"pub", "$JS.ACK.BUSBAR.x", [3]bool{n, n, n}},
		{"pub", "$KV.BUSBAR.x", [3]bool{n, n, y}},
		{"pub", "$SYS.REQ.SERVER.PING", [3]bool{n, n, n}},
		{"pub", "$SYS.REQ.ACCOUNT.PING.CONNZ", [3]bool{n, n, n}},
		{"pub", "anything", [3]bool{n, n, n}},
		{"pub", "_INBOX.hub.x", [3]bool{n, n, n}},
		{"sub", fleet.PartOf("a"), [3]bool{y, n, n}},
		{"sub", "_INBOX.node.a.>", [3]bool{y, n, n}},
		{"sub", "_INBOX.hub.>", [3]bool{n, n, y}},
		{"sub", "_INBOX.>", [3]bool{n, n, n}},
		{"sub", fleet.Beats, [3]bool{n, n, y}},
		{"sub", fleet.BeatOf("a"), [3]bool{n, n, y}},
		{"sub", fleet.ProgressAll, [3]bool{n, n, y}},
		{"sub", "busbar.part.*", [3]bool{n, n, n}},
		{"sub", fleet.LogOf("a"), [3]bool{n, n, n}},
		{"sub", "busbar.>", [3]bool{n, n, n}},
		{"sub", "$SYS.>", [3]bool{n, n, n}},
		{"sub", "$JS.>", [3]bool{n, n, n}},
		{"sub", ">", [3]bool{n, n, n}},
	} {
		for i, nc := range conns {
			if got := refused(t, nc, row.verb, row.subject); got == row.may[i] {
				t.Errorf("%s: %s %s: refused %v, allowed %v", who[i], row.verb, row.subject, got, row.may[i])
			}
		}
	}
	testEntry(t, p, own)
}

// testEntry tries to get in with credentials that are not good.
func testEntry(t *testing.T, p *place, good []byte) {
	stranger, err := OpenKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	forged, _, err := stranger.Issue("a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := p.keys.Issue("a", -time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// The name of one and the key of another.
	other, _, err := p.keys.Issue("b", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.Index(string(good), "-----BEGIN USER NKEY SEED")
	mixed := string(good)[:cut] + string(other)[strings.Index(string(other), "-----BEGIN USER NKEY SEED"):]
	for name, creds := range map[string][]byte{
		"none": nil, "of another operator": forged, "expired": old, "with another's key": []byte(mixed),
	} {
		if nc, err := p.dial(creds); err == nil {
			nc.Close()
			t.Errorf("credentials %s let one in", name)
		} else if !errors.Is(err, nats.ErrAuthorization) && !errors.Is(err, nats.ErrAuthExpired) {
			t.Errorf("credentials %s: %v", name, err)
		}
	}
}

// TestWithdrawn withdraws credentials that are in use, from another process' point of view.
func TestWithdrawn(t *testing.T) {
	p := newPlace(t, 1)
	creds, _, err := p.keys.Issue("gone", 0)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc, err := p.dial(creds)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	list, err := p.keys.Revoke("gone")
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	select {
	case <-closed:
	case <-time.After(eventually.Limit):
		t.Fatal("a connection with credentials that were withdrawn lives on")
	}
	if nc, err := p.dial(creds); err == nil {
		nc.Close()
		t.Error("credentials that were withdrawn let one in")
	}
	if _, err := p.keys.Revoke("gone"); err == nil {
		t.Error("withdrawn twice")
	}
	// New ones for the same node are good.
	creds, _, err = p.keys.Issue("gone", 0)
	if err != nil {
		t.Fatal(err)
	}
	if nc, err = p.dial(creds); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	all, err := p.keys.Issued()
	if err != nil || len(all) != 2 || all[0].Withdrawn.IsZero() || !all[1].Withdrawn.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	// What was withdrawn stays so when the server starts again.
	p.kill(0)
	p.launch(0)
	if nc, err = p.dial(creds); err != nil {
		t.Fatal(err)
	}
	nc.Close()
}
