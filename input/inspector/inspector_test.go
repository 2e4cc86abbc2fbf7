package inspector

import (
	"slices"
	"testing"
)

const sample = `{"header":{"id":"0x6b7185a32358c2","comm_name":"unknown","rank":1,"n_ranks":2,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"v2.30.7-1","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1794796602055982,"hostname":"node0","pid":1680},"coll_perf":{"coll":"AllGather","coll_sn":8,"coll_msg_size_bytes":131072,"coll_exec_time_us":72420,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":0.003620,"coll_busbw_gbs":0.001810}}
{"header":{"id":"0x6b7185a32358c2","rank":1,"n_ranks":2,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1794796602055983,"hostname":"node0","pid":1680},"p2p_perf":{"p2p":"Send","p2p_sn":3,"p2p_msg_size_bytes":4096,"p2p_exec_time_us":7}}
{"header":{"id":"0x6b7185a3
`

func TestRead(t *testing.T) {
	if !Match([]byte(sample)) {
		t.Error("not recognised")
	}
	list := Read([]byte(sample))
	if len(list) != 2 || list[0].Op != "AllGather" || list[0].Seq != 8 || list[0].Bytes != 131072 || list[0].PID != 1680 ||
		list[0].Rank != 1 || !list[1].P2P || list[1].Seq != 3 {
		t.Errorf("%+v", list)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(_ *testing.T, data []byte) { Read(data) })
}

// prom is written as the plugin of 2.30 does: two lines a row, no comments.
const prom = `nccl_bus_bandwidth_gbs{version="v5.1",slurm_job_id="4242",node="gpu-a",gpu="GPU0",comm_name="dp",n_nodes="2",nranks="16",collective="AllReduce",message_size="64-65MB",algo_proto="RING_SIMPLE"} 181.25
nccl_collective_exec_time_microseconds{version="v5.1",slurm_job_id="4242",node="gpu-a",gpu="GPU0",comm_name="dp",n_nodes="2",nranks="16",collective="AllReduce",message_size="64-65MB",algo_proto="RING_SIMPLE"} 694.5
nccl_p2p_bus_bandwidth_gbs{version="v5.1",slurm_job_id="unknown",node="gpu-a",gpu="GPU0",comm_name="unknown",n_nodes="1",nranks="2",p2p_operation="Send",message_size="1-2KB"} 0.75
nccl_p2p_exec_time_microseconds{version="v5.1",slurm_job_id="unknown",node="gpu-a",gpu="GPU0",comm_name="unknown",n_nodes="1",nranks="2",p2p_operation="Send",message_size="1-2KB"} 2.5
`

func TestProm(t *testing.T) {
	if !MatchProm([]byte(prom)) || MatchProm([]byte("nccl_x{} 1")) {
		t.Error("not recognised")
	}
	list := ReadProm([]byte("# HELP other\nother_metric{a=\"b\"} 1\n" + prom))
	want := []Mean{
		{
			Job: "4242", Node: "gpu-a", GPU: "GPU0", Comm: "dp", Ranks: 16, Nodes: 2, Op: "AllReduce",
			Low: 64 << 20, High: 65 << 20, Algo: "ring", Proto: "simple", BusGBps: 181.25, ExecUs: 694.5, Line: 3,
		},
		{
			Node: "gpu-a", GPU: "GPU0", Ranks: 2, Nodes: 1, Op: "Send", P2P: true, Low: 1 << 10, High: 2 << 10,
			BusGBps: 0.75, ExecUs: 2.5, Line: 5,
		},
	}
	if !slices.Equal(list, want) {
		t.Errorf("%+v", list)
	}
}

func FuzzProm(f *testing.F) {
	f.Add([]byte(prom))
	f.Add([]byte(`nccl_bus_bandwidth_gbs{nranks="-1",collective="x"} NaN`))
	f.Fuzz(func(t *testing.T, data []byte) {
		MatchProm(data)
		for _, m := range ReadProm(data) {
			if m.Ranks < 1 || m.Low < 0 || m.High < m.Low && m.High < 0 || !(m.BusGBps >= 0) || !(m.ExecUs >= 0) {
				t.Errorf("%+v", m)
			}
		}
	})
}
