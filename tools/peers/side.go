package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"busbar.dev/internal/test/netns"
)

// trial is one thing that all sides do: an operation at a few sizes.
type trial struct {
	section string // the table it belongs to
	over    string // tcp or shm
	op      string
	ranks   int
	sizes   []int64 // each the same multiple of the one before
	iters   int
	warm    int
	budget  float64    // seconds that a peer may spend on one size
	hosts   *netns.Net // nil is this machine alone
	per     int        // ranks a host
}

// spinner is the side whose ranks do not give way to each other: with more ranks than cores it
// takes hundreds of times as long as anybody else, which a few runs show.
const spinner = "MPICH"

// host is where a rank runs.
func (t *trial) host(rank int) int { return rank / t.per }

// words are those that mpi.c and gloo.cc have in common.
func (t *trial) words() []string {
	w := []string{t.op, strconv.Itoa(t.iters), fmt.Sprint(t.budget), strconv.Itoa(t.warm)}
	for _, s := range t.sizes {
		w = append(w, strconv.FormatInt(s, 10))
	}
	return w
}

// side is a program that takes part.
type side struct {
	name string
	// takes reports whether it can do a trial at all.
	takes func(t *trial) bool
	// start is the processes of a trial; the first one's output is read.
	start func(ctx context.Context, dir string, t *trial) []*exec.Cmd
}

const us = "busbar"

// plain is what sockets carry along a ring that adds nothing up.
const plain = "plain sockets"

// sides are all that take part. Gloo counts as one; of its algorithms the fastest is taken.
func sides() []side {
	any := func(*trial) bool { return true }
	tcp := func(t *trial) bool { return t.over == "tcp" }
	return []side{
		{us, any, busbar},
		{"Open MPI", any, openMPI},
		{spinner, any, mpich},
		{"Gloo/ring", tcp, gloo("ring")},
		{"Gloo/hd", func(t *trial) bool { return tcp(t) && t.op == "all_reduce" }, gloo("hd")},
		{plain, func(t *trial) bool { return t.section == "tcp" && t.sizes[0] >= large }, sockets},
	}
}

func sockets(ctx context.Context, dir string, t *trial) []*exec.Cmd {
	words := []string{strconv.Itoa(t.ranks), strconv.Itoa(min(t.iters, 4)), "1"}
	for _, s := range t.sizes {
		words = append(words, strconv.FormatInt(s, 10))
	}
	return []*exec.Cmd{exec.CommandContext(ctx, filepath.Join(dir, "ring"), words...)}
}

func busbar(ctx context.Context, dir string, t *trial) []*exec.Cmd {
	factor := "2"
	if len(t.sizes) > 1 {
		factor = strconv.FormatInt(t.sizes[1]/t.sizes[0], 10)
	}
	words := []string{
		filepath.Join(dir, "busbar"), "bench", "--json", "-q", "-n", strconv.Itoa(t.ranks), "--op", t.op,
		"-b", strconv.FormatInt(t.sizes[0], 10), "-e", strconv.FormatInt(t.sizes[len(t.sizes)-1], 10), "-f", factor,
		"--iters", strconv.Itoa(t.iters), "-w", strconv.Itoa(t.warm),
	}
	if t.hosts == nil {
		words = append(words, "--transport", t.over)
		return []*exec.Cmd{exec.CommandContext(ctx, words[0], words[1:]...)}
	}
	var list []*exec.Cmd
	for r := range t.ranks {
		list = append(list, t.hosts.Command(ctx, t.host(r),
			append(words, "--rank", strconv.Itoa(r), "--meet", t.hosts.Hosts[0].Addr+":29570")...))
	}
	return list
}

func openMPI(ctx context.Context, dir string, t *trial) []*exec.Cmd {
	words := []string{"mpirun.openmpi", "--oversubscribe", "--mca", "pml", "ob1", "-n", strconv.Itoa(t.ranks)}
	if t.ranks > 2 {
		words = append(words, "--mca", "mpi_yield_when_idle", "1", "--bind-to", "none")
	}
	switch {
	case t.hosts != nil:
		words = append(words, "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "eth0", "--mca",
			"oob_tcp_if_include", "eth0",
			"--mca", "plm_rsh_agent", filepath.Join(dir, "agent"), "--mca", "plm_rsh_no_tree_spawn", "1", "-H", t.hostList())
	case t.over == "tcp":
		words = append(words, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
	default:
		words = append(words, "--mca", "btl", "vader,self")
	}
	words = append(append(words, filepath.Join(dir, "openmpi")), t.words()...)
	return t.launch(ctx, words, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_btl_base_warn_component_unused=0")
}

func mpich(ctx context.Context, dir string, t *trial) []*exec.Cmd {
	words := []string{"mpirun.mpich", "-n", strconv.Itoa(t.ranks)}
	var env []string
	switch {
	case t.hosts != nil:
		words = append(words, "-launcher", "ssh", "-launcher-exec", filepath.Join(dir, "agent"), "-iface", "eth0", "-hosts",
			t.hostList())
		env = []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0"}
	case t.over == "tcp":
		env = []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "MPIR_CVAR_NOLOCAL=1"}
	}
	return t.launch(ctx, append(append(words, filepath.Join(dir, "mpich")), t.words()...), env...)
}

// launch is a launcher, on the first host where there are several.
func (t *trial) launch(ctx context.Context, words []string, env ...string) []*exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if t.hosts != nil {
		cmd = t.hosts.Command(ctx, 0, words...)
	}
	cmd.Env = append(os.Environ(), env...)
	return []*exec.Cmd{cmd}
}

// hostList is the hosts and how many ranks go to each.
func (t *trial) hostList() string {
	var list []string
	for i := range (t.ranks + t.per - 1) / t.per {
		list = append(list, fmt.Sprintf("%s:%d", t.hosts.Hosts[i].Name, t.per))
	}
	return strings.Join(list, ",")
}

func gloo(algorithm string) func(ctx context.Context, dir string, t *trial) []*exec.Cmd {
	return func(ctx context.Context, dir string, t *trial) []*exec.Cmd {
		meet, err := os.MkdirTemp(dir, "store-")
		if err != nil {
			return nil
		}
		var list []*exec.Cmd
		for r := range t.ranks {
			words := append([]string{filepath.Join(dir, "gloo"), strconv.Itoa(r), strconv.Itoa(t.ranks), meet, "lo", algorithm},
				t.words()...)
			if t.hosts == nil {
				list = append(list, exec.CommandContext(ctx, words[0], words[1:]...))
				continue
			}
			words[4] = "eth0"
			list = append(list, t.hosts.Command(ctx, t.host(r), words...))
		}
		return list
	}
}

// rows reads microseconds by size: the document of busbar, or the lines of the peers' programs.
func rows(name, op, out string) (map[int64]float64, error) {
	got := map[int64]float64{}
	if name != us {
		for _, line := range strings.Split(out, "\n") {
			var size, runs int64
			var micros float64
			if n, _ := fmt.Sscanf(line, "row %d %d %f", &size, &runs, &micros); n == 3 {
				got[size] = micros
			}
		}
		return got, nil
	}
	type half struct {
		Time struct {
			Mean float64 `json:"mean"`
		} `json:"time_s"`
	}
	var doc struct {
		Rows []struct {
			Size int64 `json:"size_bytes"`
			half
			In *half `json:"in_place"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		return nil, err
	}
	for _, r := range doc.Rows {
		got[r.Size] = r.Time.Mean * 1e6
		if (op == "all_reduce" || op == "broadcast") && r.In != nil {
			got[r.Size] = r.In.Time.Mean * 1e6
		}
	}
	if len(got) == 0 {
		return nil, errors.New("no rows")
	}
	return got, nil
}
