package doctor

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// TestWarned reads warnings of frameworks about their own speed, and temperatures: notes, and nothing where the line
// says less.
func TestWarned(t *testing.T) {
	for _, tt := range []struct{ text, id, title string }{
		{"/opt/v/lib/python3.12/site-packages/torch/_inductor/compile_fx.py:236: UserWarning: TensorFloat32 tensor cores " +
			"for float32 matrix multiplication available but not enabled. Consider setting " +
			"`torch.set_float32_matmul_precision('high')` for better performance.", "fp32-matmul", "32 bits"},
		{
			"You are using a CUDA device ('NVIDIA RTX A6000') that has Tensor Cores. To properly utilize them, you should set " +
				"`torch.set_float32_matmul_precision('medium' | 'high')` which will trade-off precision for performance.",
			"fp32-matmul", "32 bits",
		},
		{
			"[rank0]:[W1112 09:41:21.554032 reducer.cpp:1430] Warning: find_unused_parameters=True was specified in DDP " +
				"constructor, but did not find any unused parameters in the forward pass. This flag results in an extra traversal",
			"unused-flag", "unused parameters",
		},
		{"/opt/v/torch/utils/data/dataloader.py:627: UserWarning: This DataLoader will create 16 worker processes in " +
			"total. Our suggested max number of worker in current system is 8, which is smaller than what this DataLoader is " +
			"going to create.", "loader-workers", "more workers"},
		{
			"The 'train_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value of " +
				"the `num_workers` argument` to `num_workers=31` in the `DataLoader` to improve performance.", "loader-workers",
			"few workers",
		},
		{"UserWarning: 'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't " +
			"be used.", "loader-workers", "sees no GPU"},
		{"        GPU Current Temp                  : 93 C", "gpu-throttled", "93 °C"},
		{
			"| N/A   94C    P0             512W /  700W |   70123MiB /  81559MiB |     99%      Default |", "gpu-throttled",
			"94 °C",
		},
		{"        GPU Current Temp                  : 64 C", "", ""},
		{"| 30%   64C    P2             212W /  300W |   40123MiB /  49140MiB |     99%      Default |", "", ""},
		{"        Memory Current Temp               : 95 C", "", ""},
		{"torch.set_float32_matmul_precision('high')", "", ""},
	} {
		r := vocabulary().NewReader()
		if err := r.ReadOutput("job.log", strings.NewReader(tt.text+"\n")); err != nil {
			t.Fatal(err)
		}
		s, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		found := Examine(s).Findings
		i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.ID == tt.id })
		if tt.id == "" && len(found) > 0 ||
			tt.id != "" && (i < 0 || found[i].Severity != finding.Note || !strings.Contains(found[i].Title, tt.title)) {
			t.Errorf("%s: %+v", tt.text, found)
		}
	}
}

// TestHostOfFile names the host of a kernel's message by the name of its file, and tells nothing by other names.
func TestHostOfFile(t *testing.T) {
	for name, where := range map[string]string{
		"dmesg.gpu017": "gpu017", "gpu018-dmesg.txt": "gpu018", "node-3.log": "node-3", "dmesg.txt": "", "run1.log": "",
	} {
		r := vocabulary().NewReader()
		if err := r.Read(name,
			strings.
				NewReader("[ 9123.51] NVRM: Xid (PCI:0000:3b:00): 79, pid=30112, GPU has fallen off the bus.\n")); err != nil {
			t.Fatal(err)
		}
		s, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		if f := Examine(s).Findings; len(f) == 0 || f[0].ID != "gpu-fault" || f[0].Where != where {
			t.Errorf("%s: %+v, want %q", name, f, where)
		}
	}
}

// What lines of tools say of wrong copies, absent addresses and an interface that steps of a training went over.
func TestSaidByTools(t *testing.T) {
	const steps = "step 1 loss 2.3 tok/s 831\nstep 2 loss 2.3 tok/s 831\nstep 3 loss 2.3 tok/s 831\n"
	for text, want := range map[string]string{
		"Running device_to_device_memcpy_write_ce.\n Invalid value when checking the pattern at 0x7f00\n": "gpu-fault error",
		"DEV\tPORT\tINDEX\tGID\n---\t----\t-----\t---\nn_gids_found=0\n":                                  "container-no-rdma warn",
		"export NCCL_SOCKET_IFNAME=tailscale0\n":                                                          "wrong-interface error",
		"export NCCL_SOCKET_IFNAME=tailscale0\n" +
			steps: "wrong-interface note",
		steps + "[rank1]:[W326 00:35:03.8 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0(default_pg) Rank 1] Failed to " +
			"check the \"should dump\" flag on TCPStore, (maybe TCPStore server has shut down too early)\n": "training-rate note",
	} {
		r := examine(t, text)
		if len(r.Findings) == 0 || r.Findings[0].ID+" "+r.Findings[0].Severity.String() != want {
			t.Errorf("%q: %+v, want %s", text, r.Findings, want)
		}
	}
}
