package inspector

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// Mean is what the Prometheus text of one GPU says of an operation and size range on a communicator: means since the
// text before, half a minute or so. It has no ranks and no numbers of calls.
type Mean struct {
	Job             string
	Node, GPU       string // gpu-a, GPU3
	Comm            string // its name; "" where nobody gave one
	Ranks, Nodes    int32
	Op              string // AllReduce, Send
	P2P             bool
	Low, High       int64 // sizes from Low to below High, in bytes
	Algo, Proto     string
	BusGBps, ExecUs float64 // 0 where the text has none
	Line            int32
}

const maxMeans = 1 << 18

var (
	promLine = lazyre.New(`^nccl_(p2p_)?(bus_bandwidth_gbs|(?:collective_)?exec_time_microseconds)\{([^}]*)\} (\S+)`)
	promPair = lazyre.New(`(\w+)="([^"]*)"`)
	promSize = lazyre.New(`^(\d{1,4})-(\d{1,4})(B|KB|MB|GB|TB)$`)
)

// MatchProm reports the Prometheus text, alone or among metrics of others.
func MatchProm(data []byte) bool {
	return bytes.Contains(data, []byte("nccl_bus_bandwidth_gbs{")) ||
		bytes.Contains(data, []byte("nccl_p2p_bus_bandwidth_gbs{"))
}

// ReadProm reads the Prometheus text of one or several GPUs.
func ReadProm(data []byte) []Mean {
	var list []Mean
	at := map[string]int{} // a row by its labels
	n := int32(0)
	for raw := range bytes.Lines(data) {
		n++
		if len(raw) > 1<<12 || !bytes.HasPrefix(raw, []byte("nccl_")) {
			continue
		}
		m := promLine.FindSubmatch(raw)
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(string(m[4]), 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 1e15 {
			continue
		}
		labels := string(m[1]) + string(m[3])
		i, ok := at[labels]
		if !ok {
			x, known := meanOf(string(m[3]), len(m[1]) > 0)
			if !known || len(list) >= maxMeans {
				continue
			}
			i, x.Line = len(list), n
			at[labels] = i
			list = append(list, x)
		}
		if bytes.HasPrefix(m[2], []byte("bus")) {
			list[i].BusGBps = v
		} else {
			list[i].ExecUs = v
		}
	}
	return list
}

func meanOf(labels string, p2p bool) (Mean, bool) {
	l := map[string]string{}
	for _, m := range promPair.FindAllStringSubmatch(labels, 32) {
		if v := strings.ToValidUTF8(m[2], "?"); v != "unknown" {
			l[m[1]] = strings.Clone(v)
		}
	}
	x := Mean{
		Job: l["slurm_job_id"], Node: l["node"], GPU: l["gpu"], Comm: l["comm_name"], P2P: p2p, Op: l["collective"],
	}
	if p2p {
		x.Op = l["p2p_operation"]
	}
	ranks, err := strconv.ParseInt(l["nranks"], 10, 31)
	nodes, err2 := strconv.ParseInt(l["n_nodes"], 10, 31)
	if err != nil || err2 != nil || ranks < 1 || nodes < 0 || x.Op == "" {
		return x, false
	}
	x.Ranks, x.Nodes = int32(ranks), int32(nodes)
	x.Algo, x.Proto, _ = strings.Cut(strings.ToLower(l["algo_proto"]), "_")
	if m := promSize.FindStringSubmatch(l["message_size"]); m != nil {
		unit := int64(1) << (10 * strings.Index("BKMGT", m[3][:1]))
		low, _ := strconv.ParseInt(m[1], 10, 64)
		high, _ := strconv.ParseInt(m[2], 10, 64)
		x.Low, x.High = low*unit, high*unit
	}
	return x, true
}
