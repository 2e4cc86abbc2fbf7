package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/engine/ranks"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/internal/test/rdmatest"
	"busbar.dev/measure"
	"busbar.dev/query"
)

// joinRDMA starts real agents with RDMA devices, whose perftest is the stand-in.
func (f *servedFleet) joinRDMA(perftest string, devices map[fleet.Name][]string) {
	f.t.Helper()
	for name, list := range devices {
		f.joinNode(name, standIns{Perftest: perftest, Devices: list})
	}
}

// joinNode starts a real agent.
func (f *servedFleet) joinNode(name fleet.Name, with standIns) {
	f.t.Helper()
	creds := f.credentials(name)
	cfg := with.agent(name, "nats://"+f.bus, creds, f.t.TempDir(), freeport.Address(f.t))
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := agent.Run(ctx, cfg); err != nil {
			f.t.Error(err)
		}
	})
	n := &testNode{stop: func() { stop(); wg.Wait() }}
	f.t.Cleanup(n.stop)
	f.nodes[name] = n
	f.allUp(len(f.nodes))
}

// credentials makes a node's and returns their file.
func (f *servedFleet) credentials(name fleet.Name) string {
	f.t.Helper()
	creds := filepath.Join(f.t.TempDir(), "node.creds")
	if code, _, errs := f.busbar("serve", "token", "node", string(name), "-o", creds); code != exitDone {
		f.t.Fatal(errs)
	}
	return creds
}

// standIns are what a node is measured by besides TCP. An agent and its children are told by their arguments.
type standIns struct {
	Perftest string   // folder of perftest's programs
	Devices  []string // of RDMA
	GPU      string   // the program busbar-gpu; "" is none
}

// agent is an agent that measures by other means than TCP as well.
func (s standIns) agent(name fleet.Name, server, creds, dir, meet string) agent.Config {
	node := s.node()
	return agent.Config{
		Name: name, Bus: bus.Config{URLs: []string{server}, Creds: creds}, Dir: dir, Meet: meet, Bind: "127.0.0.1",
		Beat: 100 * time.Millisecond, Version: "test", Sys: node.With.Sys,
		Means:   map[fleet.Transport]func(context.Context) error{fleet.RDMA: node.LacksRDMA, fleet.NCCL: node.LacksNCCL},
		Measure: s.child().Measure,
	}
}

// child does its parts.
func (s standIns) child() agent.Child {
	text, _ := json.Marshal(s)
	part, err := exec.LookPath("rdma-part")
	if err != nil {
		panic(err)
	}
	return agent.Child{part, string(text)}
}

func (s standIns) node() *measure.FleetNode {
	with := measure.Programs{
		Find: ranks.FindProgram, Run: ranks.Program, Sys: rdmatest.Sys(s.Devices...), Worker: gpuPrograms().Worker,
		Helper: func() (string, error) {
			if s.GPU == "" {
				return "", errors.New("the program busbar-gpu is not installed")
			}
			return s.GPU, nil
		},
	}
	return &measure.FleetNode{With: with, Bind: "127.0.0.1", Perftest: s.Perftest}
}

// rdmaPart does a part with stand-ins.
func rdmaPart() {
	var s standIns
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		panic(err)
	}
	node := s.node()
	agent.RunPart("127.0.0.1", "test", map[fleet.Transport]agent.Measurer{fleet.RDMA: node.RDMA, fleet.NCCL: node.NCCL})
}

// programsOf counts the programs of a folder that run.
func programsOf(folder string) int { return processes(folder) }

// processes counts those whose arguments begin so.
func processes(arguments ...string) (n int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range list {
		data, _ := os.ReadFile(name) // it may have ended
		if strings.HasPrefix(string(data), strings.Join(arguments, "\x00")) {
			n++
		}
	}
	return n
}

// hangRDMA orders RDMA between n0 and n1, whose programs hang, and returns when they run on both. Nodes give each other
// seconds to meet, which on a busy machine may be too few: an order that is over before that is given again.
func (f *servedFleet) hangRDMA(folder string) (id string) {
	f.t.Helper()
	eventually.Holds(f.t, "programs run on both nodes", func() bool {
		if _, running, _ := f.busbar("fleet", "order", "list", "--json"); id == "" || !strings.Contains(running, id) {
			_, out, _ := f.busbar("fleet", "order", "rdma", "--nodes", "n[0-1]", "--busy", "any")
			id = strings.TrimSpace(out)
		}
		return programsOf(folder) >= 2
	})
	return id
}

// TestOrderRDMA: pairs are measured by perftest through agents, rail by rail, beside TCP and not mixed with it; who
// lacks it is named.
func TestOrderRDMA(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	devices := map[string]rdmatest.Device{}
	nodes := map[fleet.Name][]string{}
	for i := range 4 {
		a, b := fmt.Sprintf("n%da", i), fmt.Sprintf("n%db", i)
		devices[a], devices[b] = rdmatest.Device{}, rdmatest.Device{}
		nodes[fleet.Name(fmt.Sprintf("n%d", i))] = []string{a, b}
	}
	devices["n2b"] = rdmatest.Device{Gbps: 50}
	f.joinRDMA(rdmatest.Install(t, devices), nodes)

	order := func(want int, args ...string) (got query.OrderDoc) {
		t.Helper()
		code, out, errs := f.busbar(append(args, "--wait", "--json", "--busy", "any")...)
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != want {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, out, errs)
		}
		return got
	}
	// whose rates are this machine's, and judged nowhere here
	eventually.Holds(t, "every pair is measured over TCP", func() bool {
		_, out, _ := f.busbar("fleet", "order", "pairs", "--size", "64K", "--wait", "--json", "--busy", "any")
		var got query.OrderDoc
		return json.Unmarshal([]byte(out), &got) == nil && got.Measured == 6
	})
	got := order(exitDone, "fleet", "order", "rdma") // one sweep names who stands out, and is no verdict
	if got.Over != fleet.RDMA || got.Measured != 6 || got.Verdict.By != "rdma" || got.Rate.Median < 24 ||
		got.Rate.Worst > 7 || len(got.Verdict.Unhealthy) != 0 ||
		!strings.Contains(fmt.Sprint(got.Verdict.Notes), "stands out in this sweep: n2") {
		t.Fatalf("%+v %+v", got.OrderReply, got.Verdict)
	}
	for by, want := range map[string]struct {
		over  fleet.Transport
		least float64
	}{"": {fleet.TCP, 0}, "tcp": {fleet.TCP, 0}, "rdma": {fleet.RDMA, 20}} {
		var heat fleet.Heat
		f.api("/api/fleet/pairs?by="+by, &heat)
		if len(heat.Ways) != 2 || heat.By != want.over || heat.Median <= want.least {
			t.Errorf("by %q: %+v", by, heat)
		}
	}
	var link struct {
		Way  struct{ By, Rail string }
		Ways []struct{ By, Rail string }
		Out  []struct {
			Rate float64 `json:"rate_GBps"`
		} `json:"there"`
	}
	f.api("/api/fleet/link?from=n0&to=n2&by=rdma&rail=rail1", &link)
	if len(link.Ways) != 3 || link.Way.By != "rdma" || len(link.Out) != 1 || link.Out[0].Rate > 7 {
		t.Errorf("%+v", link)
	}
	if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "n[0-3]", "--json"); code != exitWrong ||
		!strings.Contains(out, `"by": "rdma"`) || !strings.Contains(out, `"hostlist": "n2"`) {
		t.Errorf("a check by RDMA with a slow port: exit %d, %s%s", code, out, errs)
	}

	// One node without a port: of all it is left out, of those that were named it is at fault, and a check goes back to
	// TCP.
	f.joinRDMA(t.TempDir(), map[fleet.Name][]string{"n9": nil})
	_, id, _ := f.busbar("fleet", "order", "rdma", "--rounds", "1", "--busy", "any")
	// by a look of the server, which follows sweeps in its own time
	eventually.Holds(t, "n2 is named after another sweep", func() bool {
		code, out, _ := f.busbar("fleet", "order", "watch", strings.TrimSpace(id), "--json")
		got = query.OrderDoc{}
		return code == exitWrong && json.Unmarshal([]byte(out), &got) == nil
	})
	if got.Measured != 2 || !slices.Contains(got.Verdict.Unmeasured, "n9") || len(got.Verdict.Unhealthy) != 1 ||
		got.Verdict.Unhealthy[0].Node != "n2" {
		t.Errorf("of all: %+v", got.Verdict)
	}
	if got := order(exitWrong, "fleet", "order", "rdma", "--nodes", "n0,n9"); got.Measured != 0 ||
		!strings.Contains(got.Why, "n9: cannot be measured by rdma: ib_write_bw of perftest is not installed") ||
		got.Verdict.Unhealthy[0].Node != "n9" {
		t.Errorf("of two: %+v %+v", got.OrderReply, got.Verdict)
	}
	code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "n[0-1],n9", "--json")
	if code > exitWrong || !strings.Contains(out, `"by": "tcp"`) ||
		!strings.Contains(out, "not by rdma: n9: ib_write_bw of perftest is not installed") {
		t.Errorf("a check with a node that has no RDMA: exit %d, %s%s", code, out, errs)
	}
	for _, args := range [][]string{
		{"fleet", "order", "rdma", "--nodes", "n0,nobody"},
		{"fleet", "order", "rdma", "--size", "4GiB"},
		{"fleet", "order", "rdma", "--max-rate", "1GB/s"},
	} {
		if code, _, errs := f.busbar(args...); code != exitBad {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}

// TestOrderRDMAStopped: an order that is cancelled while programs hang ends them on both nodes, and so does an agent
// that ends; the nodes that are left are measured again at once.
func TestOrderRDMAStopped(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	folder := rdmatest.Install(t, map[string]rdmatest.Device{"a": {Fault: "hang"}, "b": {Fault: "deaf"}, "c": {}})
	f.joinRDMA(folder, map[fleet.Name][]string{"n0": {"a"}, "n1": {"b"}, "n2": {"c"}})
	// one that came to its limit meanwhile is not
	eventually.Holds(t, "an order is cancelled while programs run", func() bool {
		code, _, _ := f.busbar("fleet", "order", "cancel", f.hangRDMA(folder))
		return code == exitDone
	})
	eventually.Holds(t, "programs end with the order", func() bool { return programsOf(folder) == 0 })
	id := f.hangRDMA(folder)
	f.nodes["n1"].stop()
	eventually.Holds(t, "programs end with an agent", func() bool { return programsOf(folder) == 0 })
	code, out, errs := f.busbar("fleet", "order", "watch", id, "--json")
	if code != exitWrong || !strings.Contains(out, `"state": "failed"`) {
		t.Errorf("an agent that ended: exit %d, %s%s", code, out, errs)
	}
}

// TestOrderGPU: agents measure a collective over all GPUs, and pairs, by busbar-gpu with a stand-in for the vendor's
// libraries; a check takes it before TCP, and who has no GPU is named.
func TestOrderGPU(t *testing.T) {
	helper := fakeGPUs(t)
	f := newServedFleet(t)
	for _, n := range []fleet.Name{"n1", "n2", "n3"} {
		f.joinNode(n, standIns{GPU: helper})
	}
	order := func(want int, args ...string) (got query.OrderDoc) {
		t.Helper()
		code, out, errs := f.busbar(append(args, "--wait", "--json", "--busy", "any")...)
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != want {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, out, errs)
		}
		return got
	}
	got := order(exitDone, "fleet", "order", "gpu", "--size", "64K", "--iters", "2", "--max-time", "40s")
	if got.Over != fleet.NCCL || got.Measured != 1 || len(got.Results) != 1 || got.Results[0].Transport != "nccl" ||
		got.Results[0].Nodes != 3 || len(got.Verdict.Healthy) != 3 {
		t.Fatalf("%+v %+v %+v", got.OrderReply, got.Verdict, got.Results)
	}
	if got = order(exitDone, "fleet", "order", "gpu", "--pairs", "--size", "64K", "--iters", "2"); got.Measured != 3 ||
		got.Verdict.By != "nccl" || got.Rate == nil {
		t.Fatalf("%+v %+v", got.OrderReply, got.Verdict)
	}
	if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "n[1-3]", "--json"); code != exitDone ||
		!strings.Contains(out, `"by": "nccl"`) {
		t.Errorf("a check: exit %d, %s%s", code, out, errs)
	}
	f.joinNode("cpu1", standIns{})
	if got = order(exitWrong, "fleet", "order", "gpu", "--nodes", "n1,cpu1"); !strings.Contains(got.Why,
		"cpu1: cannot be measured by nccl: the program busbar-gpu is not installed") {
		t.Errorf("%+v", got.OrderReply)
	}
}

// api asks the server.
func (f *servedFleet) api(path string, into any) {
	f.t.Helper()
	cl := client.New(client.Options{Folder: client.Folder{Data: f.data}, Server: "http://" + f.page})
	if err := cl.Call(f.t.Context(), "GET", path, nil, into); err != nil {
		f.t.Fatalf("%s: %v", path, err)
	}
}
