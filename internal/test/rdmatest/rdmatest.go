// Package rdmatest stands in for perftest where there is no RDMA device: a test program that is called ib_write_bw or
// the like behaves as perftest's does. Its server waits for a client at a TCP port, both exchange what they are, and
// the client prints perftest's table. What devices there are, how fast, and what is wrong with them stands in a file
// beside the program.
package rdmatest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// Device is one of the devices that programs find.
type Device struct {
	Gbps    float64 // that it carries; 0 is 200
	Latency float64 // µs; 0 is 2
	// Fault is what goes wrong: missing (there is no such device), refused (nobody is reached), gid (the connection cannot
	// be made), hang (no end), deaf (no end, and requests to end are ignored), killed (the program is killed in the
	// middle), silent (no table is printed).
	Fault string
	NoGPU bool // the program was built without CUDA
}

const devicesFile = "devices.json"

// Install makes programs of the running test program, which calls Main first, and returns their folder.
func Install(t testing.TB, devices map[string]Device) string {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"write", "read", "send"} {
		for _, what := range []string{"bw", "lat"} {
			if err := os.Symlink(exe, filepath.Join(dir, "ib_"+verb+"_"+what)); err != nil {
				t.Fatal(err)
			}
		}
	}
	data, err := json.Marshal(devices)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, devicesFile), data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Sys is a machine's / with RDMA ports of 200 Gb/s, one per device; a device whose name ends in ! is down.
func Sys(devices ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, d := range devices {
		name, state := strings.TrimSuffix(d, "!"), "4: ACTIVE"
		if name != d {
			state = "1: DOWN"
		}
		dir := "sys/class/infiniband/" + name + "/ports/1/"
		m[dir+"state"] = &fstest.MapFile{Data: []byte(state + "\n")}
		m[dir+"rate"] = &fstest.MapFile{Data: []byte("200 Gb/sec (4X HDR)\n")}
	}
	return m
}

// Main is perftest where the program is called so, and returns elsewhere.
func Main() {
	name := filepath.Base(os.Args[0])
	if !strings.HasPrefix(name, "ib_") {
		return
	}
	p := program{name: name, out: bufio.NewWriterSize(os.Stdout, 1<<20)} // as a pipe has it: printed at the end
	code := p.run(os.Args[1:])
	p.out.Flush()
	os.Exit(code)
}

// program is one run.
type program struct {
	name      string
	out       *bufio.Writer
	device    string
	size      int
	iters     int
	port, gid int
	both      bool
	Device
}

// peer is what both sides tell each other.
type peer struct {
	Name string
	Size int
	Device
}

func (p *program) fail(lines ...string) int {
	for _, l := range lines {
		fmt.Fprintln(os.Stderr, l)
	}
	return 1
}

func (p *program) run(args []string) int {
	server, help, unknown := p.parse(args)
	if unknown != "" {
		return p.fail(fmt.Sprintf("%s: unrecognized option '%s'", p.name, unknown))
	}
	devices := map[string]Device{}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), devicesFile))
	if err == nil {
		err = json.Unmarshal(data, &devices)
	}
	if err != nil {
		return p.fail(err.Error())
	}
	if help {
		fmt.Fprintf(p.out, "Usage:\n  %s            start a server and wait for connection\n", p.name)
		for _, d := range devices {
			if !d.NoGPU {
				fmt.Fprintln(p.out, "      --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing")
				break
			}
		}
		return 1 // as perftest's do
	}
	d, ok := devices[p.device]
	if p.Device = d; !ok || d.Fault == "missing" {
		return p.fail(fmt.Sprintf("IB device %s not found", p.device), " Unable to find the Infiniband/RoCE device")
	}
	if p.Gbps == 0 {
		p.Gbps = 200
	}
	if p.Latency == 0 {
		p.Latency = 2
	}
	if server == "" {
		return p.serve()
	}
	return p.connect(server)
}

// parse reads the command line: options as busbar gives them, and of the client the server's address.
func (p *program) parse(args []string) (server string, help bool, unknown string) {
	ints := map[string]*int{"-i": new(int), "-p": &p.port, "-s": &p.size, "-n": &p.iters, "-x": &p.gid, "-q": new(int)}
	p.gid = -1
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch v := ints[a]; {
		case v != nil && i+1 < len(args):
			i++
			*v, _ = strconv.Atoi(args[i])
		case a == "-d" && i+1 < len(args):
			i++
			p.device = args[i]
		case a == "-b":
			p.both = true
		case a == "--help":
			help = true
		case a == "-F", a == "--report_gbits", strings.HasPrefix(a, "--use_cuda="):
		case strings.HasPrefix(a, "-"):
			return "", false, a
		default:
			server = a
		}
	}
	return server, help, ""
}

func (p *program) serve() int {
	fmt.Fprint(p.out, "\n************************************\n* Waiting for client to connect... *\n"+
		"************************************\n")
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", p.port))
	if err != nil {
		return p.fail(fmt.Sprintf("Couldn't listen to port %d", p.port),
			"Unable to open file descriptor for socket connection")
	}
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		return p.fail("Couldn't accept")
	}
	return p.talk(c)
}

func (p *program) connect(host string) int {
	c, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(p.port)))
	if err != nil || p.Fault == "refused" {
		return p.fail(fmt.Sprintf("Couldn't connect to %s:%d", host, p.port), " Unable to open file descriptor for socket "+
			"connection Unable to init the socket connection")
	}
	return p.talk(c)
}

// talk is the test itself.
func (p *program) talk(c net.Conn) int {
	defer c.Close()
	other := peer{}
	write, read := json.NewEncoder(c), json.NewDecoder(c)
	if err := write.Encode(peer{p.device, p.size, p.Device}); err != nil {
		return p.fail(" Unable to write to socket/rdma_cm", " Failed to exchange data between server and clients")
	}
	if err := read.Decode(&other); err != nil {
		return p.fail(" Unable to read from socket/rdma_cm", " Failed to exchange data between server and clients")
	}
	switch {
	case p.Fault == "killed":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		time.Sleep(time.Hour)
	case p.Fault == "deaf":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		time.Sleep(time.Hour)
	case p.Fault == "hang":
		time.Sleep(time.Hour)
	case p.Fault == "gid", p.gid > 3:
		return p.fail("Failed to modify QP 187 to RTR", " Unable to Connect the HCA's through the link")
	}
	if err := write.Encode("done"); err != nil {
		return p.fail(" Unable to write to socket/rdma_cm")
	}
	var done string
	if err := read.Decode(&done); err != nil {
		return p.fail(" Unable to read from socket/rdma_cm", "Failed to close connection between server and client")
	}
	if p.Fault != "silent" {
		p.print(min(p.Gbps, other.Gbps), max(p.Latency, other.Latency))
	}
	return 0
}

// print writes the table.
func (p *program) print(gbps, us float64) {
	verb := map[string]string{"write": "RDMA_Write", "read": "RDMA_Read", "send": "Send"}[strings.Split(p.name, "_")[1]]
	rule := strings.Repeat("-", 87)
	test, both := "BW", ""
	if strings.HasSuffix(p.name, "_lat") {
		test = "Latency"
	} else if p.both {
		both, gbps = "Bidirectional ", 2*gbps*0.97
	}
	fmt.Fprintf(p.out, "%s\n                    %s %s%s Test\n Dual-port       : OFF\t\tDevice         : %s\n Number of "+
		"qps   : 1\t\tTransport type : IB\n Mtu             : 4096[B]\n Link type       : IB\n%s\n", rule, verb, both, test,
		p.device, rule)
	fmt.Fprint(p.out, " local address: LID 0x0e QPN 0x04c1 PSN 0x3e2f\n remote address: LID 0x0f QPN 0x04c2 PSN 0x3e30\n"+
		rule+"\n")
	if test == "Latency" {
		fmt.Fprintln(p.out, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "+
			"t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ")
		fmt.Fprintf(p.out, " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f "+
			"\t\t%-7.2f\n", p.size, p.iters, us*0.95, us*4, us, us*1.02, 0.05, us*1.4, us*3)
	} else {
		fmt.Fprintln(p.out, " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
		fmt.Fprintf(p.out, " %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f\n", p.size, p.iters, gbps, gbps*0.99,
			gbps*0.99e9/8/float64(p.size)/1e6)
	}
	fmt.Fprintln(p.out, rule)
}
