package inspector

import "testing"

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
