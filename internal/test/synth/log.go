package synth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
)

// Job is a run of NCCL on a machine, as its log under NCCL_DEBUG=INFO and
// NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH,TUNING,ENV,COLL shows it.
type Job struct {
	Machine
	// Minor is the release whose forms the lines have: 12 is 2.12. Releases before 2.18 decide as 2.18 does.
	Minor      int
	Timestamps bool // in front of lines, as since 2.26 where asked for
	Env        map[string]string
	Plan       *nccl.Plan
	sock       bool           // the network is plain sockets
	logs       map[int]string // of ranks whose log was asked for
}

// NewJob plans a job. Ranks are placed node by node.
func NewJob(m *Machine, minor int, env map[string]string) (*Job, error) {
	mm := *m
	mm.Release = fmt.Sprintf("2.%d", max(minor, nccl.Oldest.Minor))
	c, l, err := mm.Cluster()
	if err != nil {
		return nil, err
	}
	v, err := nccl.ParseVersion(mm.Release)
	if err != nil {
		return nil, err
	}
	p, err := predict.New(c, l, v, env, sim.Fitted())
	if err != nil {
		return nil, err
	}
	if minor >= nccl.Oldest.Minor {
		mm.Release = v.String()
	} else {
		mm.Release = fmt.Sprintf("2.%d.1", minor)
	}
	return &Job{
		Machine: mm, Minor: minor, Env: env, Plan: p.Plan, sock: strings.Contains(m.Fabric, "TCP"), logs: map[int]string{},
	}, nil
}

// Ranks is their number.
func (j *Job) Ranks() int { return j.Nodes * j.PerNode }

// HostOf is the name of the node that a rank runs on.
func (j *Job) HostOf(rank int) string { return j.Host(rank / j.PerNode) }

// comm is a rank's pointer to the communicator, id what all ranks call it.
func (j *Job) comm(rank int) string { return fmt.Sprintf("0x55%04x0000", 0x1000+16*rank) }

const commID = "0x5eed5eed5eed5eed"

// Info is a record of a rank, Warn a warning that a line of NCCL's source gives.
func (j *Job) Info(rank int, format string, args ...any) string {
	return j.prefix(rank) + "NCCL INFO " + fmt.Sprintf(format, args...) + "\n"
}

// Warn is a warning of a rank; the function is named since 2.30.
func (j *Job) Warn(rank int, place, function, format string, args ...any) string {
	if j.Minor >= 30 {
		place += " (" + function + ")"
	}
	return "\n" + j.prefix(rank) + place + " NCCL WARN " + fmt.Sprintf(format, args...) + "\n"
}

func (j *Job) prefix(rank int) string {
	text := fmt.Sprintf("%s:%d:%d [%d] ", j.HostOf(rank), pid(rank), pid(rank)+1, rank%j.PerNode)
	if j.Timestamps {
		return fmt.Sprintf("[2031-02-03 04:05:%02d] ", rank%60) + text
	}
	return text
}

// Log is what one rank prints while it sets up and makes some calls, healthy from end to end. Cases ask for it again
// and again, so it is kept.
func (j *Job) Log(rank int) string {
	if j.logs[rank] == "" {
		j.logs[rank] = j.Start(rank) + j.Middle(rank) + j.End(rank)
	}
	return j.logs[rank]
}

// Logs are those of all ranks, rank by rank, under a first line that says what it is.
func (j *Job) Logs() string {
	var b strings.Builder
	b.WriteString("# " + Source + "\n")
	for r := range j.Ranks() {
		b.WriteString(j.Log(r))
	}
	return b.String()
}

// Start is what comes before the communicator: version, settings, networks, the beginning of the set-up.
func (j *Job) Start(rank int) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(j.Info(rank, format, args...)) }
	addr := fmt.Sprintf("10.77.%d.%d", rank/j.PerNode/250, 1+rank/j.PerNode%250)
	line("Bootstrap : Using eth0:%s<0>", addr)
	for _, k := range slices.Sorted(maps.Keys(j.Env)) {
		line("%s set by environment to %s", k, j.Env[k])
	}
	line("cudaDriverVersion 12040")
	line("NCCL version %s+cuda12.4", j.Release)
	j.network(line, addr)
	call := ""
	if j.Minor >= 19 {
		call = "ncclCommInitRank "
	}
	line("%scomm %s rank %d nranks %d cudaDev %d%s busId %x000%s - Init START", call, j.comm(rank), rank, j.Ranks(),
		rank%j.PerNode, j.nvml(rank), Bus(rank%j.PerNode), j.id())
	return b.String()
}

// nvml and id are words of the lines about a communicator that came with 2.17 and 2.16.
func (j *Job) nvml(rank int) string {
	if j.Minor < 17 {
		return ""
	}
	return fmt.Sprintf(" nvmlDev %d", rank%j.PerNode)
}

func (j *Job) id() string {
	if j.Minor < 16 {
		return ""
	}
	return " commId " + commID
}

// network prints the devices that NCCL found.
func (j *Job) network(line func(string, ...any), addr string) {
	if j.Spec.NICs == 0 || j.sock {
		line("NET/IB : No device found.")
		line("NET/Socket : Using [0]eth0:%s<0>", addr)
		line("Using network Socket")
		return
	}
	layer := "IB"
	if strings.Contains(j.Fabric, "RoCE") {
		layer = "RoCE"
	}
	var list strings.Builder
	mbps := int(j.Spec.Port * 8 / 1e6)
	for i := range j.Spec.NICs {
		fmt.Fprintf(&list, " [%d]mlx5_%d:1/%s", i, i, layer)
		if j.Minor >= 27 {
			line("NET/IB: [%d] mlx5_%d:uverbs%d:1/%s provider=Mlx5 speed=%d context=0x55aa00 "+
				"pciPath=/sys/devices/pci0000:%02x/0000:%02x:00.0 ar=0", i, i, i, layer, mbps, Bus(i)-1, Bus(i)+1)
			line("NET/IB : Made virtual device [%d] name=mlx5_%d speed=%d ndevs=1", i, i, mbps)
		}
	}
	line("NET/IB : Using%s [RO]; OOB eth0:%s<0>", list.String(), addr)
	line("Using network IB")
	for i := range j.Spec.NICs {
		line("NET/IB : GPU Direct RDMA Enabled for HCA %d 'mlx5_%d'", i, i)
		if j.Minor >= 23 {
			line("ncclTopoPopulateNics : Filled mlx5_%d in topo with pciPath=/sys/devices/pci0000:%02x/0000:%02x:00.0 keep=1 "+
				"coll=(null)", i, Bus(i)-1, Bus(i)+1)
		}
	}
}
