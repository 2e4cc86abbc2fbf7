package hub

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
)

// rights are what docs/fleet.md says that a user may do.
func rights(t *testing.T, name string) (pub, sub []string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "nsc add user --name "+name+" ")
	text, _, ended := strings.Cut(text, "\n\n")
	if !found || !ended {
		t.Fatalf("docs/fleet.md has no user %s", name)
	}
	for _, m := range regexp.MustCompile(`--allow-(pub|sub) '([^']+)'`).FindAllStringSubmatch(text, -1) {
		if list := strings.Split(m[2], ","); m[1] == "pub" {
			pub = append(pub, list...)
		} else {
			sub = append(sub, list...)
		}
	}
	slices.Sort(pub)
	slices.Sort(sub)
	return pub, sub
}

// TestRightsInTheManual holds the rights that are issued against those in the documentation.
func TestRightsInTheManual(t *testing.T) {
	keys, err := bus.OpenKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	issue := map[string]func() ([]byte, error){
		"hub":   keys.Hub,
		"gpu01": func() ([]byte, error) { creds, _, err := keys.Issue("gpu01", 0); return creds, err },
	}
	for name, f := range issue {
		creds, err := f()
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.ParseDecoratedJWT(creds)
		if err != nil {
			t.Fatal(err)
		}
		u, err := jwt.DecodeUserClaims(text)
		if err != nil {
			t.Fatal(err)
		}
		pub, sub := rights(t, name)
		slices.Sort(u.Pub.Allow)
		slices.Sort(u.Sub.Allow)
		if !slices.Equal(pub, u.Pub.Allow) || !slices.Equal(sub, u.Sub.Allow) {
			t.Errorf("%s: the documentation says\n%q\n%q\nand these are issued:\n%q\n%q", name, pub, sub, u.Pub.Allow,
				u.Sub.Allow)
		}
	}
}

// somebody is who runs a NATS server in operator mode, with tools of their own.
type somebody struct {
	url     string
	account nkeys.KeyPair
}

func newSomebody(t *testing.T) *somebody {
	t.Helper()
	pair := func(p nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		if err != nil {
			t.Fatal(err)
		}
		public, err := p.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return p, public
	}
	operator, operatorID := pair(nkeys.CreateOperator())
	account, accountID := pair(nkeys.CreateAccount())
	_, systemID := pair(nkeys.CreateAccount())
	res := &natsd.MemAccResolver{}
	for _, id := range []string{accountID, systemID} {
		a := jwt.NewAccountClaims(id)
		if id == accountID {
			a.Limits.DiskStorage, a.Limits.Streams, a.Limits.Consumer = 7<<30+1<<20, 2, jwt.NoLimit
		}
		text, err := a.Encode(operator)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Store(id, text); err != nil {
			t.Fatal(err)
		}
	}
	op := jwt.NewOperatorClaims(operatorID)
	op.SystemAccount = systemID
	text, err := op.Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	if op, err = jwt.DecodeOperatorClaims(text); err != nil {
		t.Fatal(err)
	}
	ns, err := natsd.NewServer(&natsd.Options{
		Host: "127.0.0.1", Port: natsd.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		JetStreamMaxStore: 20 << 30, MaxPayload: fleet.MaxBytes + 4<<10,
		TrustedOperators: []*jwt.OperatorClaims{op}, AccountResolver: res, SystemAccount: systemID,
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(eventually.Limit) {
		t.Fatal("the server does not start")
	}
	return &somebody{ns.ClientURL(), account}
}

// user makes credentials with the rights of the documentation for as.
func (s *somebody) user(t *testing.T, as, name string) []byte {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	u := jwt.NewUserClaims(public)
	pub, sub := rights(t, as)
	for _, x := range pub {
		u.Pub.Allow.Add(strings.ReplaceAll(x, "gpu01", name))
	}
	for _, x := range sub {
		u.Sub.Allow.Add(strings.ReplaceAll(x, "gpu01", name))
	}
	if as != "hub" {
		u.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	}
	text, err := u.Encode(s.account)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		t.Fatal(err)
	}
	return creds
}

// TestFleetOnSomebodysServer runs a fleet with the documented rights and no others.
func TestFleetOnSomebodysServer(t *testing.T) {
	s := newSomebody(t)
	var hubs []*bus.Bus
	hub := func() (*Hub, func()) {
		file := filepath.Join(t.TempDir(), "hub.creds")
		if err := writeAll(file, s.user(t, "hub", "hub")); err != nil {
			t.Fatal(err)
		}
		b, err := bus.Connect(bus.Config{
			URLs: []string{s.url}, Creds: file, On: func(_ bool, text string) { t.Log("hub:", text) },
		})
		if err != nil {
			t.Fatal(err)
		}
		hubs = append(hubs, b)
		return hubAt(t, b)
	}
	a, stop := hub()
	eventually.Holds(t, "the first leads", a.Leads)
	b, _ := hub()
	var nodes []*remote
	for _, n := range []fleet.Name{"x", "y.rack1", "z"} {
		nodes = append(nodes, newRemoteAt(t, s.url, s.user(t, "gpu01", n.Token()), n, func(fleet.Name) float64 { return 1 }))
	}
	eventually.Holds(t, "all are up for both", func() bool {
		for _, h := range []*Hub{a, b} {
			up := 0
			for _, n := range h.Nodes() {
				if n.State == fleet.NodeUp {
					up++
				}
			}
			if up != len(nodes) {
				return false
			}
		}
		return true
	})
	sweeps(t, a, 2)
	stop()
	eventually.Holds(t, "the other leads", b.Leads)
	sweeps(t, b, 1)
	if _, err := b.Give(t.Context(), pairOrder()); err != nil {
		t.Error(err)
	}
	for i, x := range hubs {
		if n := x.Refused(); n != 0 {
			t.Errorf("server %d was refused %d times", i, n)
		}
	}
	for _, x := range nodes {
		if n := x.b.Refused(); n != 0 {
			t.Errorf("a node was refused %d times", n)
		}
	}
}

// TestThreeServersInTheManual reads the configuration of three servers that docs/fleet.md has.
func TestThreeServersInTheManual(t *testing.T) {
	data, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "    server_name: nats1\n")
	text, _, ended := strings.Cut(text, "\n\n")
	if !found || !ended {
		t.Fatal("docs/fleet.md has no configuration of three servers")
	}
	var o natsd.Options
	if err := o.ProcessConfigString(text); err != nil {
		t.Fatal(err)
	}
	if !o.JetStream || !o.SyncAlways || o.JetStreamMaxStore < 7<<30 || len(o.Routes) != 3 || o.Cluster.Name == "" {
		t.Errorf("%+v", o)
	}
}
