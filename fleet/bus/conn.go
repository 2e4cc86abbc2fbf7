package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Subjects beside those of package fleet.
const (
	directGet0   = "$JS.API.DIRECT.GET."
	directGet    = directGet0 + fleet.Stream + "."
	partSubjects = "busbar.part.*"
	bucket       = "BUSBAR" // of leases
)

// Config is how a node or a server of the fleet reaches the bus.
type Config struct {
	// URLs are those of one or several servers: nats://host:4222, tls://host:4222.
	URLs []string
	// Creds is a file of credentials. It is read at every connection, so that new
	// credentials take effect without a restart. Empty is none.
	Creds string
	// CA is a file of certificates to trust with tls://; empty is the machine's.
	CA string
	// Node is who connects; empty is a server of the fleet.
	Node fleet.Name
	// Where is what a second agent of this name is told of this one: its host and address.
	Where string
	// Patient does not need a connection at once: it is tried again and again, as it is after
	// a connection was lost.
	Patient bool
	// On, where it is set, is told of what happens to the connection. It must not block.
	On func(Event)

	// Replicas, Keep and MaxBytes are of the stream that a server of the fleet makes: how
	// many servers hold it (0 is what it has, else 3 in a cluster and 1 without), how long
	// events are kept (0 is for ever) and how many bytes of them (0 is 7 GiB). The oldest goes first.
	Replicas int
	Keep     time.Duration
	MaxBytes int64

	creds  []byte      // instead of Creds
	mark   *Mark       // of a server of our own
	inside nats.Option // the server is in this process
}

// Event is something that happened to a connection.
type Event struct {
	Connected bool   // how it is now
	Text      string // what happened
}

// Bus is a connection. Its methods may be used from several goroutines.
type Bus struct {
	node    fleet.Name
	nc      *nats.Conn
	js      jetstream.JetStream
	cfg     Config
	refused atomic.Int64
	meter   meter // of what nodes send
	agents  agents
	mark    *Mark
	agent   string // this process, among those that connect under one name
	began   time.Time
	held    context.Context // ends when another agent has the name
	release context.CancelCauseFunc

	mu     sync.Mutex // guards following
	relays *nats.Conn // it brings to the store what nodes send
	// lives ends with the present connection, so that nobody waits for an answer that
	// went to a connection that is gone.
	lives context.Context
	lost  context.CancelFunc
}

// inboxOf is where answers to a node's requests arrive, empty for a server's. Others may not
// listen there.
func inboxOf(n fleet.Name) string {
	if n == "" {
		return "_INBOX.hub"
	}
	return "_INBOX.node." + n.Token()
}

// Connect connects. Whatever happens to the connection afterwards is mended in the background
// until Close.
func Connect(c Config) (*Bus, error) {
	b := &Bus{node: c.Node, cfg: c, agent: NewOrigin(), began: time.Now(), mark: cmp.Or(c.mark, &Mark{})}
	b.held, b.release = context.WithCancelCause(context.Background())
	b.begin()
	o := nats.GetDefaultOptions()
	if len(c.URLs) == 0 {
		return nil, errors.New("no server address was given")
	}
	for _, s := range c.URLs {
		if err := CheckURL(s); err != nil {
			return nil, err
		}
	}
	opts, err := b.options()
	if err != nil {
		return nil, err
	}
	for _, f := range opts {
		if err := f(&o); err != nil {
			return nil, err
		}
	}
	o.Servers = c.URLs
	if b.nc, err = o.Connect(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.URLs[0], err)
	}
	if b.js, err = jetstream.New(b.nc); err == nil && c.Node != "" {
		err = b.answerHere()
	}
	if err != nil {
		b.nc.Close()
		return nil, err
	}
	return b, nil
}

// CheckURL refuses addresses that cannot be meant, and secrets where others can read them.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("server %q: an address such as tls://host:7642 or nats://127.0.0.1:7642 is expected", s)
	case u.User != nil:
		return fmt.Errorf("server nats://…@%s: put credentials into a file, not into the address", u.Host)
	case u.Scheme != "nats" && u.Scheme != "tls":
		return fmt.Errorf("server %q: expected tls:// (or nats:// without TLS) and the port for agents, such as "+
			"tls://host:7642", s)
	}
	return nil
}

func (b *Bus) options() ([]nats.Option, error) {
	c := &b.cfg
	opts := []nats.Option{
		nats.Name("busbar " + string(c.Node)),
		nats.CustomInboxPrefix(inboxOf(c.Node)),
		nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectJitter(500*time.Millisecond, time.Second),
		nats.Timeout(5 * time.Second), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(3),
		nats.ReconnectBufSize(-1), // what cannot be sent now is for the publisher to send again
		nats.RetryOnFailedConnect(c.Patient),
		nats.ConnectHandler(func(nc *nats.Conn) {
			b.begin()
			b.report(true, "connected to "+nc.ConnectedUrlRedacted())
		}),
		nats.IgnoreAuthErrorAbort(), // credentials may be replaced
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.end()
			if err != nil { // else it was closed
				b.report(false, fmt.Sprintf("connection lost: %v%s", err, credentialsRefused(err)))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			b.begin()
			b.report(true, "connected again to "+nc.ConnectedUrlRedacted())
		}),
		nats.ReconnectErrHandler(func(nc *nats.Conn, err error) {
			b.report(false, fmt.Sprintf("no connection: %v%s", err, advice(err)))
		}),
		nats.ErrorHandler(func(nc *nats.Conn, s *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				b.refused.Add(1)
			}
			b.report(nc.IsConnected(), err.Error()+credentialsRefused(err))
		}),
	}
	switch {
	case c.creds != nil:
		opts = append(opts, nats.UserCredentialBytes(c.creds))
	case c.Creds != "":
		opts = append(opts, nats.UserCredentials(c.Creds))
	}
	if c.inside != nil {
		opts = append(opts, c.inside)
	}
	if c.CA != "" {
		data, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s: no certificate is in it", c.CA)
		}
		opts = append(opts, nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	}
	return opts, nil
}

// advice says what to do about a connection that does not come about.
func advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var network *net.OpError
	switch {
	case errors.Is(err, nats.ErrSecureConnRequired):
		return " (the server there wants TLS: tls:// instead of nats://)"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return " (the server there has no TLS: nats:// instead of tls://, where the network is trusted)"
	case errors.As(err, &unknown):
		return " (its certificate is signed by an unknown authority: give the CA certificate with --tls-ca)"
	case errors.Is(err, io.EOF), errors.As(err, &network) && network.Op == "read" && network.Timeout(),
		errors.Is(err, nats.ErrTimeout):
		return " (is this the port for agents? The default is 7642; the page has another)"
	}
	return credentialsRefused(err)
}

// credentialsRefused says what to do where a server does not take the credentials, also of a connection that there was.
func credentialsRefused(err error) string {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) {
		return " (the server rejects these credentials: they were revoked, have expired or belong to another server; " +
			"busbar serve token node NAME -o FILE on its machine makes new ones, and the file is read again at each try)"
	}
	return ""
}

// begin and end bound a connection's life.
func (b *Bus) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		b.lost()
	}
	b.lives, b.lost = context.WithCancel(context.Background())
}

func (b *Bus) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost()
}

// request asks once and waits for the answer, no longer than the connection lives.
func (b *Bus) request(ctx context.Context, m *nats.Msg, most time.Duration) (*nats.Msg, error) {
	if b.nc.IsClosed() {
		return nil, nats.ErrConnectionClosed
	}
	if !b.nc.IsConnected() {
		return nil, nats.ErrDisconnected
	}
	b.mu.Lock()
	lives := b.lives
	b.mu.Unlock()
	asked, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(lives, cancel)()
	answer, err := b.nc.RequestMsgWithContext(asked, m)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = nats.ErrDisconnected
	}
	return answer, err
}

// Retryable tells what passes by itself from what does not.
func Retryable(err error) bool {
	for _, e := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrNoServers, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (b *Bus) report(connected bool, text string) {
	if b.cfg.On != nil {
		b.cfg.On(Event{connected, text})
	}
}

// Connected reports whether there is a connection now.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Mark is what is known of the store apart from it.
func (b *Bus) Mark() *Mark { return b.mark }

// Refused counts what the server did not permit.
func (b *Bus) Refused() int64 { return b.refused.Load() }

// Close sends what waits, for up to a second, and ends the connection.
func (b *Bus) Close() {
	if b.nc.IsConnected() {
		_ = b.nc.FlushTimeout(time.Second)
	}
	b.mu.Lock()
	relays := b.relays
	b.mu.Unlock()
	if relays != nil {
		relays.Close()
	}
	b.nc.Close()
	b.end()
	b.release(nil)
}
