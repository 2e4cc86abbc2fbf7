package bus

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Subjects beside those of package fleet.
const (
	directGet = "$JS.API.DIRECT.GET." + fleet.Stream + "."
	bucket    = "BUSBAR" // of leases
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
	// Node is who connects; empty is a server of the fleet. A node does not need a connection at once: it is tried again
	// and again, as it is after a connection was lost.
	Node fleet.Name
	// Where is what a second agent of this name is told of this one: its host and address.
	Where string
	// On, where it is set, is told of what happens to the connection. It must not block.
	On func(connected bool, text string)

	// Keep and MaxBytes are of the stream that a server of the fleet makes: how long events are kept (0 is for ever)
	// and how many bytes of them (0 is 7 GiB). The oldest goes first.
	Keep     time.Duration
	MaxBytes int64

	creds  []byte  // instead of Creds
	server *Server // in this process
}

// Bus is a connection. Its methods may be used from several goroutines.
type Bus struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cfg     Config
	refused atomic.Int64
	mark    *Mark
	agent   string // this process, among those that connect under one name
	began   time.Time
	held    context.Context // ends when another agent has the name
	release context.CancelCauseFunc

	nodes     nodes                     // what is known of those that send
	transient atomic.Pointer[Transient] // who is told what they send in passing
	cuts      atomic.Int64              // how often the connection to them was lost

	side  *nats.Conn           // what nodes send arrives here, after Ensure
	heard []*nats.Subscription // of side
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
	b := &Bus{cfg: c, agent: rand.Text(), began: time.Now(), mark: &Mark{}}
	if c.server != nil && c.Node == "" {
		b.mark = c.server.mark
	}
	b.held, b.release = context.WithCancelCause(context.Background())
	for _, s := range c.URLs {
		if err := CheckURL(s); err != nil {
			return nil, err
		}
	}
	up := func(nc *nats.Conn) { b.report(true, "connected to "+nc.ConnectedUrlRedacted()) }
	var err error
	if b.nc, err = b.dial(nats.RetryOnFailedConnect(c.Node != ""), nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else it was closed
				b.report(false, fmt.Sprintf("connection lost: %v%s", err, credentialsRefused(err)))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			b.report(false, fmt.Sprintf("no connection: %v%s", err, advice(err)))
		})); err != nil {
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

// dial makes a connection.
func (b *Bus) dial(more ...nats.Option) (*nats.Conn, error) {
	c := &b.cfg
	opts := []nats.Option{
		nats.Name("busbar " + string(c.Node)),
		nats.CustomInboxPrefix(inboxOf(c.Node)),
		nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.ReconnectJitter(500*time.Millisecond, time.Second),
		nats.Timeout(5 * time.Second), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(3),
		nats.ReconnectBufSize(-1),   // what cannot be sent now is for the publisher to send again
		nats.IgnoreAuthErrorAbort(), // credentials may be replaced
		nats.ErrorHandler(func(nc *nats.Conn, _ *nats.Subscription, err error) {
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
	if c.server != nil {
		opts = append(opts, nats.InProcessServer(c.server))
	}
	if c.CA != "" {
		opts = append(opts, nats.RootCAs(c.CA))
	}
	return nats.Connect(strings.Join(c.URLs, ","), append(opts, more...)...)
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

// request asks once and waits for the answer.
func (b *Bus) request(ctx context.Context, m *nats.Msg, most time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return b.nc.RequestMsgWithContext(ctx, m)
}

// Retryable tells what passes by itself from what does not.
func Retryable(err error) bool {
	for _, e := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrNoServers, context.DeadlineExceeded,
		jetstream.ErrNoStreamResponse, jetstream.ErrInvalidJSAck,
		nats.ErrHeadersNotSupported, // of a connection that has not come about yet
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// patience is how long was waited before the last try.
type patience time.Duration

// wait waits before the next try, longer each time. It is an error when the context ends.
func (p *patience) wait(ctx context.Context) error {
	*p = min(max(2**p, patience(50*time.Millisecond)), patience(3*time.Second))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(*p)):
		return nil
	}
}

func (b *Bus) report(connected bool, text string) {
	if b.cfg.On != nil {
		b.cfg.On(connected, text)
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
	if b.side != nil {
		b.side.Close()
	}
	b.nc.Close()
	b.release(nil)
}
