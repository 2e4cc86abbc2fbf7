package bus

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Bounds of a server of our own.
const (
	maxPayload  = fleet.MaxBytes + 4<<10 // a message and its headers
	maxPending  = 64 << 20               // what waits for one connection that does not read
	reloadEvery = 2 * time.Second
)

// ServerConfig is a server within this process.
type ServerConfig struct {
	// Dir holds the store and, in Dir/keys, the keys. One server uses it at a time.
	Dir string
	// Listen is host:port; empty is 127.0.0.1 with a port that is free, "-" only this process.
	Listen string
	// TLS is what the server shows; without it only loopback addresses are listened on,
	// unless Plain says that the network is trusted.
	TLS   *tls.Config
	Plain bool
	// MaxBytes bounds the store; 0 is 8 GiB. MaxConnections 0 is 12 000.
	MaxBytes       int64
	MaxConnections int
	// Lazy leaves it to the kernel when messages reach the disk: an acknowledged message
	// then survives a killed server but not a power cut.
	Lazy bool
	// OnLog, where it is set, gets the server's warnings and errors.
	OnLog func(level, text string)
	// OnFlood, where it is set, is told of nodes that are shut out because they send too much. It must not block.
	OnFlood func(Flood)
}

// Server is a NATS server with a store, within this process.
type Server struct {
	cfg      ServerConfig
	keys     *Keys
	mark     *Mark
	unlock   func()
	stop     chan struct{}
	done     sync.WaitGroup
	reported bool  // that the store cannot write; watch uses it
	guard    guard // watch uses it too

	mu     sync.Mutex // guards following
	ns     *server.Server
	signed string // the account as the server knows it
}

// Start starts a server and waits until it takes connections.
func Start(c ServerConfig) (*Server, error) {
	c.complete()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(c.Dir, "lock"), false)
	if err != nil {
		return nil, err
	}
	s, err := start(&c)
	if err != nil {
		unlock()
		return nil, err
	}
	s.unlock = unlock
	s.done.Go(s.watch)
	return s, nil
}

func start(c *ServerConfig) (*Server, error) {
	keys, err := OpenKeys(filepath.Join(c.Dir, "keys"))
	if err != nil {
		return nil, err
	}
	// Leases hold for seconds and are worth no repair: no server that they were given to is there any more.
	leases, _ := filepath.Glob(filepath.Join(c.Dir, "store", "jetstream", "*", "streams", "KV_"+bucket))
	for _, dir := range leases {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"journal", "journal.old"} { // of versions that kept events twice
		_ = os.Remove(filepath.Join(c.Dir, name))
	}
	mark, err := openMark(filepath.Join(c.Dir, "mark"))
	if err != nil {
		return nil, err
	}
	if err := keys.limit(c); err != nil {
		return nil, err
	}
	ns, text, err := launch(c, keys)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: *c, keys: keys, mark: mark, ns: ns, stop: make(chan struct{}), signed: text}, nil
}

// launch runs a server, and gives the account as it knows it.
func launch(c *ServerConfig, keys *Keys) (*server.Server, string, error) {
	o, err := c.options(keys)
	if err != nil {
		return nil, "", err
	}
	if err := free(o); err != nil {
		return nil, "", err
	}
	ns, err := server.NewServer(o)
	if err != nil {
		return nil, "", fmt.Errorf("server in %s: %w", c.Dir, err)
	}
	l := &logger{hook: c.OnLog}
	ns.SetLoggerV2(l, false, false, false)
	ns.Start()
	if !ns.ReadyForConnections(30*time.Second) || !ns.JetStreamEnabled() {
		ns.Shutdown()
		return nil, "", fmt.Errorf("server in %s: it accepts no connections at %s: %s", c.Dir, c.Listen, l.lines())
	}
	_, text, err := keys.claims()
	if err != nil {
		ns.Shutdown()
		return nil, "", err
	}
	return ns, text, nil
}

// free says at once that an address cannot be listened at: the server itself would try for half a minute.
func free(o *server.Options) error {
	if o.DontListen || o.Port == server.RANDOM_PORT {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// ServerOptions are those of a server that trusts these keys, for who runs several of them as
// a cluster: names and routes are to be filled in.
func (k *Keys) ServerOptions(c ServerConfig) (*server.Options, error) {
	c.complete()
	if err := k.limit(&c); err != nil {
		return nil, err
	}
	return c.options(k)
}

func (c *ServerConfig) complete() {
	c.MaxBytes = cmp.Or(c.MaxBytes, 8<<30)
	c.MaxConnections = cmp.Or(c.MaxConnections, 12_000)
}

// options is the server as NATS wants to hear it.
func (c *ServerConfig) options(keys *Keys) (*server.Options, error) {
	host, port, err := c.address()
	if err != nil {
		return nil, err
	}
	op, err := keys.operatorClaims()
	if err != nil {
		return nil, err
	}
	res, err := keys.resolver()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: "busbar-" + public(keys.account)[:8],
		Host:       host, Port: port, DontListen: c.Listen == "-",
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: filepath.Join(c.Dir, "store"),
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: c.MaxBytes + c.MaxBytes/8,
		SyncAlways: !c.Lazy,
		MaxConn:    c.MaxConnections, MaxPayload: maxPayload, MaxPending: maxPending,
		WriteDeadline: 10 * time.Second, AuthTimeout: 5,
		PingInterval: 20 * time.Second, MaxPingsOut: 3,
		TrustedOperators: []*jwt.OperatorClaims{op},
		AccountResolver:  res, SystemAccount: public(keys.system),
	}
	if c.TLS != nil {
		o.TLS, o.TLSConfig, o.TLSTimeout = true, c.TLS, 5
	}
	return o, nil
}

// address splits Listen, and refuses to show itself to others by accident.
func (c *ServerConfig) address() (string, int, error) {
	if c.Listen == "" || c.Listen == "-" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: host:port is expected", c.Listen)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: port %q is no number up to 65535", c.Listen, text)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && c.TLS == nil && !c.Plain {
		return "", 0, fmt.Errorf("listen address %q can be reached from other machines: give the server a certificate, or "+
			"allow plain text", c.Listen)
	}
	host = cmp.Or(host, "0.0.0.0")
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}

// limit signs what the account may use at most, where that has changed.
func (k *Keys) limit(c *ServerConfig) error {
	unlock, err := lock(filepath.Join(k.dir, keysLock), true)
	if err != nil {
		return err
	}
	defer unlock()
	a, _, err := k.claims()
	if err != nil {
		return err
	}
	want := jwt.OperatorLimits{
		NatsLimits:    jwt.NatsLimits{Subs: int64(c.MaxConnections) * 8, Data: jwt.NoLimit, Payload: maxPayload},
		AccountLimits: jwt.AccountLimits{Conn: int64(c.MaxConnections), DisallowBearer: true},
		JetStreamLimits: jwt.JetStreamLimits{
			DiskStorage: c.MaxBytes + c.MaxBytes/8, MemoryStorage: 32 << 20, Streams: 2, Consumer: 256,
		},
	}
	if a.Limits.NatsLimits == want.NatsLimits && a.Limits.AccountLimits == want.AccountLimits &&
		a.Limits.JetStreamLimits == want.JetStreamLimits {
		return nil
	}
	a.Limits = want
	return k.writeAccount(a)
}

// resolver hands the server the accounts there are.
func (k *Keys) resolver() (server.AccountResolver, error) {
	m := &server.MemAccResolver{}
	_, text, err := k.claims()
	if err != nil {
		return nil, err
	}
	system := jwt.NewAccountClaims(public(k.system))
	system.Name = "system"
	signed, err := system.Encode(k.operator)
	if err != nil {
		return nil, err
	}
	return m, errors.Join(m.Store(public(k.account), text), m.Store(public(k.system), signed))
}

// Keys are those of the server.
func (s *Server) Keys() *Keys { return s.keys }

// URL is where clients on other machines, or in other processes, find the server.
func (s *Server) URL() string { return s.running().ClientURL() }

// Reload makes the server follow what was withdrawn, as it does by itself within seconds.
func (s *Server) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, text, err := s.keys.claims()
	if err != nil || text == s.signed {
		return err
	}
	if err := s.ns.AccountResolver().Store(a.Subject, text); err != nil {
		return err
	}
	acc, err := s.ns.LookupAccount(a.Subject)
	if err != nil {
		return err
	}
	s.guard.close(a)
	s.ns.UpdateAccountClaims(acc, a)
	s.signed = text
	return nil
}

// watch follows the keys on disk, which other processes may change, and the store's health.
func (s *Server) watch() {
	tick, look := time.NewTicker(reloadEvery), time.NewTicker(guardEvery)
	defer tick.Stop()
	defer look.Stop()
	for {
		select {
		case now := <-look.C:
			s.guarded(now)
		case <-tick.C:
			_ = s.Reload() // a file that cannot be read now is read next time
			s.repair()
		case <-s.stop:
			return
		}
	}
}

// Node is how a node within this process reaches the server. Its credentials leave the process
// nowhere, and are not written down.
func (s *Server) Node(name fleet.Name) (Config, error) {
	creds, _, err := s.keys.Issuer().Node(name, 0)
	return Config{URLs: []string{"nats://127.0.0.1"}, Node: name, creds: creds, inside: nats.InProcessServer(s)}, err
}

// Connect reaches the server from this process, as a server of the fleet.
func (s *Server) Connect(c Config) (*Bus, error) {
	creds, _, err := s.keys.Issuer().Hub(0)
	if err != nil {
		return nil, err
	}
	// The address is only a name here; with tls:// the client would insist on a certificate.
	c.URLs, c.creds, c.inside = []string{"nats://127.0.0.1"}, creds, nats.InProcessServer(s)
	c.Node, c.mark = "", s.mark
	c.Replicas = cmp.Or(c.Replicas, 1)
	return Connect(c)
}

// Close ends the server in order. Close connections to it first.
func (s *Server) Close() {
	close(s.stop)
	s.done.Wait()
	ns := s.running()
	ns.Shutdown()
	ns.WaitForShutdown()
	_ = s.mark.close() // a disk that is full
	s.unlock()
}

// logger passes on what the server says from warnings upwards.
type logger struct {
	hook func(level, text string)
	mu   sync.Mutex
	last string
}

func (l *logger) log(level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	l.mu.Lock()
	l.last = text
	l.mu.Unlock()
	if l.hook != nil {
		l.hook(level, text)
	}
}

func (l *logger) lines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *logger) Noticef(string, ...any)         {}
func (l *logger) Debugf(string, ...any)          {}
func (l *logger) Tracef(string, ...any)          {}
func (l *logger) Warnf(format string, v ...any)  { l.log("warn", format, v) }
func (l *logger) Errorf(format string, v ...any) { l.log("error", format, v) }
func (l *logger) Fatalf(format string, v ...any) { l.log("fatal", format, v) }
