package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/engine"
	"busbar.dev/input/perftest"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/natural"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Port is an RDMA port as its node shows it.
type Port = sysfs.PortState

// Perftest is how RDMA is measured by the programs of perftest, and one host's side of it.
type Perftest struct {
	With        Programs
	Folder      string     // of the programs; empty is PATH
	Verb        string     // write, read or send
	Size, Small unit.Bytes // messages for bandwidth and for latency
	Iters, QPs  int
	GID         int      // index, below 0: perftest's choice
	Devices     []string // in the order of rails; none is all active ports
	Cuda        bool     // between GPUs' memories
	Rounds      int      // per rail; 0 is as many as usual

	paths map[bool]string // of the programs, for latency and not
	known []Port          // as told to rank 0
	taken []io.Closer
}

// briefIters is how many messages a test has where all wait for it.
const briefIters = 200

// NewPerftest is how perftest is run where nobody says otherwise: briefly.
func NewPerftest(with Programs, folder string) *Perftest {
	return &Perftest{
		With: with, Folder: folder, Verb: "write", Size: unit.MiB, Small: 8, Iters: briefIters, QPs: 1, GID: -1,
	}
}

// Validate reports messages that perftest cannot send.
func (p *Perftest) Validate() error {
	for _, s := range []unit.Bytes{p.Size, p.Small} {
		if s < 1 || s > unit.GiB {
			return fmt.Errorf("messages of %v; expected 1 byte to 1 GiB", s)
		}
	}
	return nil
}

// ports lists the ports of this host, and says why it has none that can be measured.
func (p *Perftest) ports(ctx context.Context) ([]Port, error) {
	if p.With.Sys == nil || p.With.Run == nil || p.With.Find == nil {
		return nil, errors.New("no programs can be run here")
	}
	p.paths = map[bool]string{}
	for _, latency := range []bool{false, true} {
		name := perfProgram(p.Verb, latency)
		path, err := p.With.Find(p.Folder, name)
		if err != nil {
			return nil, fmt.Errorf("%s of perftest is not installed: %w; give its folder with --perftest DIR", name, err)
		}
		p.paths[latency] = path
	}
	if p.Cuda {
		var help strings.Builder
		_ = p.With.Run(ctx, 5*time.Second, []string{p.paths[false], "--help"}, &help) // its exit code says nothing
		if !strings.Contains(help.String(), "use_cuda") {
			return nil, fmt.Errorf("%s was built without CUDA: its --help has no --use_cuda; leave --cuda out, or build "+
				"perftest with CUDA_H_PATH", p.paths[false])
		}
	}
	all, err := sysfs.Ports(p.With.Sys)
	if err != nil {
		return nil, err
	}
	return pickPorts(all, p.Devices)
}

var errNoPort = errors.New("no active RDMA port")

// pickPorts are the active RDMA ports, or those that were asked for.
func pickPorts(all []Port, want []string) ([]Port, error) {
	up := map[string]Port{}
	var names []string
	among := ""
	for _, p := range all {
		switch end := portEnd(p.Name); {
		case !p.RDMA:
		case p.Up && end.port > 0:
			up[p.Name] = p
			names = append(names, p.Name)
		case strings.Count(among, ",") < 3:
			among += ", " + p.Name + " is " + p.State
		}
	}
	if among != "" {
		among = " (" + among[2:] + ")"
	}
	natural.Sort(names)
	if len(want) > 0 {
		names = nil
	}
	for _, name := range want {
		if !strings.Contains(name, "/") {
			name += "/1"
		}
		if _, ok := up[name]; !ok {
			return nil, fmt.Errorf("no active RDMA port %s below /sys/class/infiniband%s", name, among)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w below /sys/class/infiniband%s", errNoPort, among)
	}
	list := make([]Port, len(names))
	for i, n := range names {
		list[i] = up[n]
	}
	return list, nil
}

// portEnd is a port as perftest names it, with the host's memory; its number is 0 where the name has none.
func portEnd(name string) perfEnd {
	device, number, _ := strings.Cut(name, "/")
	n, _ := strconv.Atoi(number) // else 0
	return perfEnd{device, n, -1}
}

// claim takes this host's ports for a job, all or none, and lists them.
func (p *Perftest) claim(ctx context.Context, job string) (r reply, err error) {
	p.free()
	list, err := p.ports(ctx)
	for _, port := range list {
		if p.With.Alone == nil {
			break
		}
		var c io.Closer
		if c, err = p.With.Alone.Take(port.Name, job); err != nil {
			p.free()
			return r, err
		}
		p.taken = append(p.taken, c)
	}
	p.known = list
	return reply{Ports: list, Portless: errors.Is(err, errNoPort)}, err
}

// free lets others measure.
func (p *Perftest) free() {
	if p == nil {
		return
	}
	for _, c := range p.taken {
		if c != nil { // another rank of the job has it
			_ = c.Close()
		}
	}
	p.taken, p.known = nil, nil
}

// perftestOrder is what a host does of a pair.
type perftestOrder struct {
	Port string `json:"port"` // mlx5_0/1
	GPU  int    `json:"gpu"`  // whose memory is used, below 0: the host's
	// Peer is where the other host is reached: an address, for what is none might be an option of the program.
	Peer  netip.AddrPort `json:"peer"`
	Brief bool           `json:"brief"`
}

// pairTests are what a pair runs: latency and bandwidth each way, and both ways at once; where all wait for it, the
// first of them.
var pairTests = []struct {
	from int // which of the pair sends
	perfTest
}{
	{0, perfTest{latency: true}},
	{0, perfTest{}},
	{1, perfTest{}},
	{1, perfTest{latency: true}},
	{0, perfTest{both: true}},
}

const briefTests = 3

// pair runs the tests of a pair, with the other rank of a group of two. It has what this host's clients measured.
func (p *Perftest) pair(ctx context.Context, g *engine.Group, o *perftestOrder) ([]pairs.Measure, error) {
	// who asks may be another's agent
	if !slices.ContainsFunc(p.known, func(own Port) bool { return own.Name == o.Port }) {
		return nil, fmt.Errorf("%.60q: this host has no such port", o.Port)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // programs do not outlive the other rank
		select {
		case <-g.Broken():
			stop()
		case <-ctx.Done():
		}
	}()
	end := portEnd(o.Port)
	end.gpu = o.GPU
	cells := []pairs.Measure{{From: 0, To: 1}, {From: 1, To: 0}}
	tests := pairTests
	if o.Brief {
		tests = tests[:briefTests]
	}
	for _, x := range tests {
		client := (g.Rank() == x.from) != (p.Verb == "read") // bytes of a read come to the client
		row, err := p.side(ctx, g, x.perfTest, end, client, o.Peer.Addr().String())
		switch back := 1 - x.from; {
		case errors.Is(err, errOther): // which says why
			return nil, nil
		case err != nil:
			return nil, err
		case row == nil:
		case x.both:
			cells[0].Both, cells[1].Both = row.Rate, row.Rate
		case !x.latency:
			cells[x.from].Rate = row.Rate
		default:
			if cells[x.from].Latency = row.Typical; o.Brief {
				cells[back].Latency = row.Typical
			}
		}
	}
	return cells, nil
}

var errOther = errors.New("the other side failed")

// side runs one side of a test: the server tells its port, and both tell whether it failed. The client has the row.
func (p *Perftest) side(ctx context.Context, g *engine.Group, t perfTest, end perfEnd, client bool,
	peer string,
) (row *perftest.Row, err error) {
	told := []int32{0}
	var server *perfServer
	if !client {
		if server, err = p.serve(ctx, t, end); err == nil {
			told[0] = int32(server.tcp)
		}
	}
	told, lost := sum(ctx, g, told)
	if port := int(told[0]); lost == nil && client && port != 0 {
		if row, err = nil, fmt.Errorf("a server at port %d", port); port > 0 && port <= math.MaxUint16 {
			row, err = p.client(ctx, t, end, peer, port)
		}
	}
	if told = []int32{0}; err != nil {
		told[0] = 1
	}
	if lost == nil {
		told, lost = sum(ctx, g, told)
	}
	failed := lost != nil || told[0] > 0
	if server != nil {
		if why := server.end(failed); failed && err == nil {
			err = why
		}
	}
	switch {
	case err != nil:
		return nil, err
	case lost != nil:
		return nil, lost
	case failed:
		return nil, errOther
	}
	return row, nil
}

// PortsAlone keeps the RDMA ports of a host for one measurement: two at once would each see a part of the rate. Names
// are abstract addresses of Linux, which end with their process, however it ends. The ranks of one job share ports.
type PortsAlone struct {
	Prefix string // of the names
}

// aloneTime is how long who holds a port has to say for which job.
const aloneTime = time.Second

// Take takes a port for a job until it is closed; nil where another rank of the job has it.
func (a *PortsAlone) Take(port, job string) (io.Closer, error) {
	name := "@" + a.Prefix + port
	l, err := net.Listen("unix", name)
	if err != nil {
		if job != "" && holder(name) == job {
			return nil, nil
		}
		return nil, fmt.Errorf("%s is being measured by another busbar on this host, and two at once would measure each "+
			"other; wait for its end", port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(aloneTime))
			_, _ = io.WriteString(c, job) // who does not read is told that the port is taken
			_ = c.Close()
		}
	}()
	return l, nil
}

// holder is the job for which a port is held, empty where nobody says.
func holder(name string) string {
	c, err := net.DialTimeout("unix", name, aloneTime)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(aloneTime))
	job, _ := io.ReadAll(io.LimitReader(c, 256))
	return string(job)
}
