// Package nvsentinel is a check as one of NVSentinel's preflight checks: what its environment and the ConfigMap of a
// gang say, and how a verdict is reported over its socket. Names and numbers are those of its documents
// (configuration/preflight, tutorials/writing-a-preflight-check) and of data-models/protobufs/health_event.proto.
//
// The package is not promised: it follows NVSentinel.
package nvsentinel

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/lazyre"
)

// Preflight is what a check is started with.
type Preflight struct {
	Node, Pod string
	Socket    string // the connector's
	StoreOnly bool   // a bad verdict is reported, and the pod starts all the same

	gang    string // the folder of its ConfigMap; empty for a pod that is in none
	patient time.Duration
	now     func() time.Time
}

// Gang is where the pods of a job meet.
type Gang struct {
	Rank, Size    int
	Address, Port string
}

// Read reads the environment.
func Read(get func(string) string) (Preflight, error) {
	p := Preflight{
		Node: get("NODE_NAME"), Pod: get("POD_NAME"), now: time.Now, patient: 10 * time.Minute,
		Socket:    strings.TrimPrefix(cmp.Or(get("PLATFORM_CONNECTOR_SOCKET"), "/var/run/nvsentinel.sock"), "unix://"),
		StoreOnly: get("PROCESSING_STRATEGY") == "STORE_ONLY",
	}
	if p.Node == "" {
		return p, errors.New("NODE_NAME is not set; NVSentinel's preflight sets it in every container that it injects")
	}
	if s := get("PROCESSING_STRATEGY"); s != "" && s != "STORE_ONLY" && s != "EXECUTE_REMEDIATION" {
		return p, fmt.Errorf("PROCESSING_STRATEGY=%.40q; expected EXECUTE_REMEDIATION or STORE_ONLY", s)
	}
	if get("GANG_ID") == "" {
		return p, nil
	}
	p.gang = cmp.Or(get("GANG_CONFIG_DIR"), "/etc/preflight")
	if p.Pod == "" {
		return p, errors.New("GANG_ID is set and POD_NAME is not; its rank stands in the gang's ConfigMap under that name")
	}
	if s := get("GANG_TIMEOUT_SECONDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 86400 {
			return p, fmt.Errorf("GANG_TIMEOUT_SECONDS=%.40q; expected 1 to 86400", s)
		}
		p.patient = time.Duration(n) * time.Second
	}
	return p, nil
}

// mostGang bounds a gang's pods, and mostKey a key of its ConfigMap, which holds at most a MiB.
const (
	mostGang = 65536
	mostKey  = 1 << 20
)

// Meet waits until all pods of the gang are known. A pod that is in no gang is one of one.
func (p *Preflight) Meet(ctx context.Context) (Gang, error) {
	if p.gang == "" {
		return Gang{Size: 1}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.patient)
	defer cancel()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		g, known, err := p.readGang()
		switch {
		case err != nil:
			return g, err
		case known == g.Size && known > 0:
			return g, nil
		}
		select {
		case <-ctx.Done():
			return g, failure.Cannot(fmt.Errorf("%d of %d pods of the gang came within %v", known, g.Size, p.patient))
		case <-again.C:
		}
	}
}

// readGang reads the ConfigMap, and how many pods are known by now. Kubernetes replaces its files one after the other.
func (p *Preflight) readGang() (g Gang, known int, err error) {
	size, err := p.key("expected_count")
	if err != nil || size == "" {
		return g, 0, err // it is not there yet
	}
	if g.Size, err = strconv.Atoi(size); err != nil || g.Size < 0 || g.Size > mostGang {
		return g, 0, fmt.Errorf("%s: expected_count %.40q; expected a number of pods up to %d", p.gang, size, mostGang)
	}
	peers, err := p.key("peers")
	if err != nil {
		return g, 0, err
	}
	g.Rank = -1
	seen, pods := map[int]bool{}, map[string]bool{}
	for line := range strings.Lines(peers) {
		f := strings.Split(strings.TrimSpace(line), ";")
		if len(f) < 3 {
			continue
		}
		rank, err := strconv.Atoi(strings.TrimSpace(f[2]))
		if _, ip := netip.ParseAddr(strings.TrimSpace(f[1])); err != nil || ip != nil || rank < 0 || rank >= max(g.Size, 1) ||
			seen[rank] || pods[f[0]] {
			return g, 0, fmt.Errorf("%s: peers: %.80q; expected POD;ADDRESS;RANK of %d ranks, each once", p.gang, line,
				g.Size)
		}
		seen[rank], pods[f[0]] = true, true
		if known++; f[0] == p.Pod {
			g.Rank = rank
		}
		if rank == 0 {
			g.Address = strings.TrimSpace(f[1])
		}
	}
	if known < g.Size {
		return g, known, nil
	}
	if known > g.Size || g.Rank < 0 || g.Rank >= g.Size {
		return g, 0,
			fmt.Errorf("%s: %d peers of %d, and the rank of pod %.80q among them is %d; expected each of the gang once",
				p.gang, known, g.Size, p.Pod, g.Rank)
	}
	if master, err := p.key("master_addr"); err != nil || master != "" {
		if g.Address = master; err == nil && !hostName.MatchString(master) {
			return g, 0, fmt.Errorf("%s: master_addr %.80q; expected an address or a host's name", p.gang, master)
		}
	}
	port, err := p.key("master_port")
	g.Port = cmp.Or(port, "29500")
	if n, bad := strconv.ParseUint(g.Port, 10, 16); bad != nil || n == 0 {
		err = fmt.Errorf("%s: master_port %.40q; expected 1 to 65535", p.gang, g.Port)
	}
	return g, known, err
}

var hostName = lazyre.New(`^[A-Za-z0-9.:_-]{1,253}$`)

// key is a value of the ConfigMap, empty where there is none yet.
func (p *Preflight) key(name string) (string, error) {
	at := filepath.Join(p.gang, name)
	if s, err := os.Stat(at); err == nil && !s.Mode().IsRegular() {
		return "", fmt.Errorf("%s: expected a file, as a ConfigMap has them", at)
	}
	f, err := os.Open(at)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", failure.Cannot(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostKey))
	return strings.TrimSpace(string(data)), err
}

// Event is a verdict on this node.
type Event struct {
	Healthy, Fatal bool
	Message        string
	Codes          []string // of what is wrong, such as BUSBAR_SLOW_NODE
}

// Agent and Check are what rules of NVSentinel match an event by; Check is also the node's condition.
const (
	Agent = "busbar-preflight"
	Check = "BusbarCheck"
)

// Actions that an event recommends.
const (
	actionNone           = 0
	actionContactSupport = 5
)

// Report sends an event to the connector of this node: a call of gRPC, which is a POST of HTTP/2.
func (p *Preflight) Report(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	message := p.events(e)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.Socket)
	}
	c := http.Client{Transport: &http.Transport{Protocols: &protocols, DialContext: dial}}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://localhost/datamodels.PlatformConnector/HealthEventOccurredV1", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	res, err := c.Do(req)
	if err != nil {
		return failure.Cannot(fmt.Errorf("the event was not sent to %s: %w", p.Socket, err))
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)); err != nil {
		return failure.Cannot(fmt.Errorf("the event was not taken by %s: %w", p.Socket, err))
	}
	status := cmp.Or(res.Trailer.Get("Grpc-Status"), res.Header.Get("Grpc-Status"))
	if status != "0" || res.StatusCode != http.StatusOK {
		return failure.Cannot(fmt.Errorf("the event was not taken by %s: HTTP %d, gRPC status %.20q %.200q", p.Socket,
			res.StatusCode, status, cmp.Or(res.Trailer.Get("Grpc-Message"), res.Header.Get("Grpc-Message"))))
	}
	return nil
}

// mostMessage bounds what a node's condition says.
const mostMessage = 1024

// events is an event as HealthEvents of health_event.proto, whose fields have these numbers.
func (p *Preflight) events(e Event) []byte {
	var m message
	m.number(1, 1) // version
	m.text(2, Agent)
	m.text(3, "Node") // componentClass
	m.text(4, Check)
	m.flag(5, e.Fatal)
	m.flag(6, e.Healthy)
	m.text(7, strings.ToValidUTF8(e.Message[:min(len(e.Message), mostMessage)], ""))
	if e.Fatal {
		m.number(8, actionContactSupport)
	} else {
		m.number(8, actionNone)
	}
	for _, c := range e.Codes {
		m.text(9, c)
	}
	var entity message
	entity.text(1, "NODE")
	entity.text(2, p.Node)
	m.text(10, string(entity))
	var at message
	now := p.now()
	at.number(1, uint64(max(now.Unix(), 0)))
	at.number(2, uint64(now.Nanosecond()))
	m.text(12, string(at))
	m.text(13, p.Node)
	strategy := uint64(1) // EXECUTE_REMEDIATION
	if p.StoreOnly {
		strategy = 2
	}
	m.number(16, strategy)
	var all message
	all.number(1, 1)
	all.text(2, string(m))
	return all
}

// message is one of protocol buffers.
type message []byte

func (m *message) number(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), v)
}

func (m *message) flag(field int, b bool) {
	if b {
		m.number(field, 1)
	}
}

// text is a field of bytes: a text, or another message.
func (m *message) text(field int, s string) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(s))), s...)
}

// Code is a finding's kind as an error code: BUSBAR_SLOW_NODE.
func Code(kind string) string {
	return "BUSBAR_" + strings.ToUpper(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, kind))
}
