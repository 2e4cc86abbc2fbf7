package bus

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// Bounds of a server of our own.
const (
	maxPayload     = fleet.MaxBytes + 4<<10 // a message and its headers
	maxPending     = 64 << 20               // what waits for one connection that does not read
	maxConnections = 12_000
	maxStore       = 9 << 30 // the stream, and room for its files
	reloadEvery    = 2 * time.Second
)

// ServerConfig is a server within this process.
type ServerConfig struct {
	// Dir holds the store and, in Dir/keys, the keys. One server uses it at a time.
	Dir string
	// Listen is host:port; empty is 127.0.0.1 with a port that is free, "-" only this process.
	Listen string
	// TLS is what the server shows, nil for none.
	TLS *tls.Config
	// Lazy leaves it to the kernel when messages reach the disk: an acknowledged message
	// then survives a killed server but not a power cut.
	Lazy bool
	// OnLog, where it is set, gets the server's warnings and errors.
	OnLog func(text string)
}

// Server is a NATS server with a store, within this process.
type Server struct {
	cfg      ServerConfig
	keys     *Keys
	mark     *Mark
	unlock   func()
	stop     chan struct{}
	done     sync.WaitGroup
	reported bool // that the store cannot write; watch uses it

	mu      sync.Mutex // guards following
	ns      *server.Server
	revoked jwt.RevocationList       // as the server knows them
	shut    map[fleet.Name]time.Time // nodes that are refused until then
	heard   map[uint64]int64         // what came over each connection up to the last look
}

// Start starts a server and waits until it takes connections.
func Start(c ServerConfig) (*Server, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := Lock(filepath.Join(c.Dir, "lock"), false)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: c, unlock: unlock, stop: make(chan struct{}), shut: map[fleet.Name]time.Time{}}
	if s.keys, err = OpenKeys(filepath.Join(c.Dir, "keys")); err == nil {
		s.mark, err = openMark(filepath.Join(c.Dir, "mark"))
	}
	// Leases hold for seconds and are worth no repair: no server that they were given to is there any more.
	leases, _ := filepath.Glob(filepath.Join(c.Dir, storeDir, "jetstream", "*", "streams", "KV_"+bucket))
	for _, dir := range leases {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err == nil {
		err = s.launch()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	s.done.Go(s.watch)
	return s, nil
}

// launch runs the NATS server.
func (s *Server) launch() error {
	o, err := s.keys.ServerOptions(s.cfg)
	if err != nil {
		return err
	}
	if o.Port != server.RANDOM_PORT { // the server itself would try for half a minute
		l, err := net.Listen("tcp", s.cfg.Listen)
		if err != nil {
			return err
		}
		l.Close()
	}
	ns, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("server in %s: %w", s.cfg.Dir, err)
	}
	l := &logger{hook: s.cfg.OnLog}
	ns.SetLoggerV2(l, false, false, false)
	ns.Start()
	if !ns.ReadyForConnections(30*time.Second) || !ns.JetStreamEnabled() {
		ns.Shutdown()
		return fmt.Errorf("server in %s: it accepts no connections at %s: %v", s.cfg.Dir, s.cfg.Listen, l.last.Load())
	}
	s.mu.Lock()
	s.ns, s.revoked = ns, nil // what was withdrawn meanwhile is found by Reload
	s.mu.Unlock()
	return nil
}

// ServerOptions are those of a server that trusts these keys, for who runs several of them as
// a cluster: names and routes are to be filled in.
func (k *Keys) ServerOptions(c ServerConfig) (*server.Options, error) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	if c.Listen != "" && c.Listen != "-" {
		var err error
		if at, err = net.ResolveTCPAddr("tcp", c.Listen); err != nil {
			return nil, err
		}
	}
	a, err := k.claims(nil)
	if err != nil {
		return nil, err
	}
	accounts := &server.MemAccResolver{}
	for _, a := range []*jwt.AccountClaims{a, jwt.NewAccountClaims(public(k.system))} {
		text, err := a.Encode(k.operator)
		if err = errors.Join(err, accounts.Store(a.Subject, text)); err != nil {
			return nil, err
		}
	}
	options := &server.Options{
		ServerName: "busbar-" + a.Subject[:8],
		Port:       cmp.Or(at.Port, server.RANDOM_PORT), DontListen: c.Listen == "-",
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: filepath.Join(c.Dir, storeDir), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: maxStore,
		SyncAlways: !c.Lazy,
		MaxConn:    maxConnections, MaxPayload: maxPayload, MaxPending: maxPending,
		WriteDeadline: 10 * time.Second, AuthTimeout: 5, PingInterval: 20 * time.Second, MaxPingsOut: 3,
		TrustedKeys: []string{public(k.operator)}, AccountResolver: accounts, SystemAccount: public(k.system),
		TLS: c.TLS != nil, TLSConfig: c.TLS, TLSTimeout: 5,
	}
	if at.IP != nil {
		options.Host = at.IP.String()
	}
	return options, nil
}

// claims are the account as a server is to know it: what it may use, and whom it refuses.
func (k *Keys) claims(shut map[fleet.Name]time.Time) (*jwt.AccountClaims, error) {
	a := jwt.NewAccountClaims(public(k.account))
	a.Name = "busbar"
	a.SigningKeys.Add(public(k.signer))
	a.Limits.DisallowBearer = true
	a.Limits.JetStreamLimits = jwt.JetStreamLimits{
		DiskStorage: maxStore, MemoryStorage: 32 << 20, Streams: 2, Consumer: 256,
	}
	all, err := k.Issued()
	for _, e := range all {
		if _, out := shut[e.Node]; out || !e.Withdrawn.IsZero() {
			// Whenever it was issued, by a clock that was ahead too: the key is of these credentials alone.
			a.RevokeAt(e.Key, time.Unix(math.MaxUint32, 0))
		}
	}
	return a, err
}

// Keys are those of the server.
func (s *Server) Keys() *Keys { return s.keys }

// URL is where clients on other machines, or in other processes, find the server.
func (s *Server) URL() string { return s.running().ClientURL() }

// reload makes the server follow whom it has to refuse, and cut who of them is connected.
func (s *Server) reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.shut, func(_ fleet.Name, until time.Time) bool { return time.Now().After(until) })
	a, err := s.keys.claims(s.shut)
	if err != nil || maps.Equal(a.Revocations, s.revoked) {
		return err
	}
	text, err := a.Encode(s.keys.operator)
	if err = errors.Join(err, s.ns.AccountResolver().Store(a.Subject, text)); err != nil {
		return err
	}
	account, err := s.ns.LookupAccount(a.Subject)
	if err != nil {
		return err
	}
	s.ns.UpdateAccountClaims(account, a)
	s.revoked = a.Revocations
	return nil
}

// watch follows the keys on disk, which other processes may change, and the store's health.
func (s *Server) watch() {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.reload()     // a file that cannot be read now is read next time
			_ = s.mark.write() // a disk that is full: the next change tries again
			s.repair()
		case <-s.stop:
			return
		}
	}
}

// Node is how a node within this process reaches the server. Its credentials leave the process
// nowhere, and are not written down.
func (s *Server) Node(name fleet.Name) (Config, error) {
	creds, _, err := s.keys.node(name, 0)
	return Config{URLs: []string{inside}, Node: name, creds: creds, server: s}, err
}

// inside is only a name here; with tls:// the client would insist on a certificate.
const inside = "nats://127.0.0.1"

// Connect reaches the server from this process, as a server of the fleet.
func (s *Server) Connect(c Config) (*Bus, error) {
	creds, err := s.keys.Hub()
	if err != nil {
		return nil, err
	}
	c.URLs, c.Node, c.creds, c.server = []string{inside}, "", creds, s
	return Connect(c)
}

// Close ends the server in order. Close connections to it first.
func (s *Server) Close() {
	close(s.stop)
	s.done.Wait()
	ns := s.running()
	ns.Shutdown()
	ns.WaitForShutdown()
	_ = s.mark.write() // a disk that is full
	s.unlock()
}

// logger passes on what the server says from warnings upwards.
type logger struct {
	hook func(text string)
	last atomic.Value
}

func (l *logger) log(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.last.Store(text)
	if l.hook != nil {
		l.hook(text)
	}
}

func (l *logger) Noticef(string, ...any)         {}
func (l *logger) Debugf(string, ...any)          {}
func (l *logger) Tracef(string, ...any)          {}
func (l *logger) Warnf(format string, v ...any)  { l.log(format, v...) }
func (l *logger) Errorf(format string, v ...any) { l.log(format, v...) }
func (l *logger) Fatalf(format string, v ...any) { l.log(format, v...) }

// running is the server as it is now.
func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ns
}

// InProcessConn is a connection from this process to the server as it is now.
func (s *Server) InProcessConn() (net.Conn, error) { return s.running().InProcessConn() }

// shutOut refuses the credentials of nodes that flood for a minute, and ends their connections. It adds those that send
// or connect more than any agent, also what they may not publish and nobody else hears of.
func (s *Server) shutOut(nodes *nodes) []Flood {
	floods := nodes.floods()
	list, err := s.running().Connz(&server.ConnzOptions{Username: true, Limit: 2 * maxConnections})
	issued, err2 := s.keys.Issued()
	if err != nil || err2 != nil {
		return floods
	}
	s.mu.Lock()
	heard, open, came := map[uint64]int64{}, map[string]int{}, map[string]int64{}
	for _, c := range list.Conns {
		heard[c.Cid] = c.InMsgs + c.InBytes/512
		open[c.AuthorizedUser]++
		came[c.AuthorizedUser] += max(0, heard[c.Cid]-s.heard[c.Cid])
	}
	s.heard = heard
	for _, e := range issued {
		n, m := open[e.Key], came[e.Key]
		within := func(s *sender) bool { return s.edge.AllowN(time.Now(), int(m)) }
		if n > connsEach || m > 0 && !nodes.take(e.Node, "", within) {
			floods = append(floods, Flood{e.Node, fmt.Sprintf("%d connections, and more than a node has to send", n), m})
		}
	}
	for _, f := range floods {
		s.shut[f.Node] = time.Now().Add(shutFor)
	}
	s.mu.Unlock()
	if len(floods) > 0 {
		_ = s.reload() // else it is done by watch
	}
	return floods
}
