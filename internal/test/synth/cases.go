package synth

import (
	"fmt"
	"strings"
)

// File is a named text.
type File struct{ Name, Text string }

// Case is what people have of a job with one planted fault, and of the same job without it.
type Case struct {
	Name string
	Want string // the finding that names the cause
	Who  string // the rank or host that has the fault, as the finding must name it; "" where nobody does
	// Sick and Healthy are the files of the two.
	Sick, Healthy []File
}

// Cases are faults of several kinds, one a case: of launchers, processes, GPUs, networks, settings.
func Cases() ([]Case, error) {
	m := Machines()[0]
	j, err := NewJob(&m, 28, nil)
	if err != nil {
		return nil, err
	}
	old, err := NewJob(&m, 23, nil)
	if err != nil {
		return nil, err
	}
	few, err := NewJob(&m, 28, map[string]string{"NCCL_MAX_NCHANNELS": "1"})
	if err != nil {
		return nil, err
	}
	var list []Case
	for _, group := range [][]Case{j.programCases(), j.hostCases(), j.networkCases(), settingCases(j, old, few)} {
		list = append(list, group...)
	}
	return list, nil
}

// nccl is the log of all ranks; change edits one rank's.
func (j *Job) nccl(change func(rank int, log string) string) File {
	var b strings.Builder
	b.WriteString("# " + Source + "\n")
	for r := range j.Ranks() {
		log := j.Log(r)
		if change != nil {
			log = change(r, log)
		}
		b.WriteString(log)
	}
	return File{"nccl.log", b.String()}
}

// ranks is one text of all ranks' output, each rank's by a function.
func (j *Job) ranks(each func(rank int) string) File {
	var b strings.Builder
	b.WriteString("# " + Source + "\n" + j.Environment())
	for r := range j.Ranks() {
		b.WriteString(each(r))
	}
	return File{"job.log", b.String()}
}

// trains is a rank that does its steps.
func (j *Job) trains(rank int) string { return j.Steps(rank, 8, 1.2) }

// programCases are faults of processes and of what they compute.
func (j *Job) programCases() []Case {
	healthy := []File{j.nccl(nil), j.ranks(j.trains)}
	job := func(each func(rank int) string) []File { return []File{j.nccl(nil), j.ranks(each)} }
	return []Case{
		{"straggler", "straggler", "rank 11", job(func(r int) string {
			if r == 11 {
				return j.Steps(r, 8, 1.7)
			}
			return j.trains(r)
		}), healthy},
		{"missing rank", "collective-timeout", "ranks without the message: 5", job(func(r int) string {
			if r == 5 {
				return j.trains(r)
			}
			return j.trains(r) + j.Watchdog(r, 77, "ALLREDUCE")
		}), healthy},
		{"rank behind", "collective-timeout", "sequence numbers 76 to 77", job(func(r int) string {
			seq := 77
			if r == 9 {
				seq = 76
			}
			return j.trains(r) + j.Watchdog(r, seq, "ALLREDUCE")
		}), healthy},
		{"killed rank", "rank-killed", fmt.Sprintf("(pid: %d)", pid(3)), job(func(r int) string {
			text := j.trains(r)
			if r != 3 {
				text += j.Watchdog(r, 77, "ALLREDUCE")
			} else {
				text += j.Summary(3, -9)
			}
			return text
		}), healthy},
		{"GPU memory", "out-of-memory", "[rank6]", job(func(r int) string {
			if r == 6 {
				return j.trains(r) + "[rank6]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 6 has " +
					"a total capacity of 79.10 GiB of which 1.20 GiB is free.\n"
			}
			return j.trains(r) + j.Watchdog(r, 77, "ALLREDUCE")
		}), healthy},
		{"rendezvous", "rendezvous", "15/16 clients joined", []File{j.ranks(func(r int) string {
			return fmt.Sprintf("[rank%d]: torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. "+
				"15/16 clients joined.\n", r)
		})}, healthy},
	}
}

// hostCases are faults of a host: its GPUs, its memory, its limits.
func (j *Job) hostCases() []Case {
	host := j.HostOf(12)
	kernel := File{"dmesg." + host + ".log", j.Kernel(1)}
	with := func(files ...File) []File { return files }
	warned := func(rank int, text string) File {
		return j.nccl(func(r int, log string) string {
			if r == rank {
				return j.Start(r) + text
			}
			return log
		})
	}
	return []Case{
		{"GPU off the bus", "gpu-fault", host, with(
			File{kernel.Name, kernel.Text + j.KernelXid(12, 79, "GPU has fallen off the bus.")},
			warned(12, j.Middle(12)+j.Warn(12, "enqueue.cc:1400", "ncclLaunchKernel",
				"Cuda failure 'unspecified launch failure'"))), with(kernel, j.nccl(nil))},
		{
			"two ranks on a GPU", "duplicate-gpu", "rank 4 and rank 3", with(
				warned(4, j.Warn(4, "init.cc:1000", "initTransportsRank",
					"Duplicate GPU detected : rank 4 and rank 3 both on CUDA device %x000", Bus(3))+j.Info(4, "init.cc:1380 -> 5"))),
			with(j.nccl(nil)),
		},
		{"shared memory", "shm-too-small", host, with(
			warned(12, j.Warn(12, "misc/shmutils.cc:72", "shmOpen", "Error: failed to extend /dev/shm/nccl-a1b2c3 to 9637892 "+
				"bytes, error: No space left on device (28)")+j.Info(12, "transport/shm.cc:590 -> 2"))), with(j.nccl(nil))},
		{
			"locked memory", "memlock", host, with(
				warned(12, j.Warn(12, "misc/ibvwrap.cc:262", "wrap_ibv_reg_mr",
					"Call to ibv_reg_mr failed with error Cannot allocate memory")+j.Info(12, "transport/net_ib.cc:1600 -> 2")),
				File{"limits.txt", "max locked memory       (kbytes, -l) 64\n"}),
			with(j.nccl(nil), File{"limits.txt", "max locked memory       (kbytes, -l) unlimited\n"}),
		},
		{"fabric manager", "fabric-manager", "system not yet initialized", with(
			warned(12, j.Warn(12, "init.cc:400", "ncclInit", "Cuda failure 802 'system not yet initialized'")+
				j.Info(12, "init.cc:1700 -> 1"))), with(j.nccl(nil))},
	}
}

// networkCases are faults between hosts.
func (j *Job) networkCases() []Case {
	second := j.Host(1)
	healthy := []File{j.nccl(nil)}
	on := func(node int, edit func(string) string) []File {
		return []File{j.nccl(func(r int, log string) string {
			if r/j.PerNode == node {
				return edit(log)
			}
			return log
		})}
	}
	return []Case{
		{"port down", "bad-link", second, on(1, func(log string) string {
			return log + j.Warn(9, "transport/net_ib.cc:150", "ncclIbAsyncThreadMain",
				"NET/IB : mlx5_1:1 Got async event : port error") +
				j.Warn(9, "transport/net_ib.cc:2100", "ncclIbTest", "NET/IB : Got completion from peer 10.77.0.1<40001> with "+
					"status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_1")
		}), healthy},
		{"wrong interface", "wrong-interface", "docker0", []File{j.nccl(func(r int, log string) string {
			if r/j.PerNode == 1 {
				log = strings.ReplaceAll(log, "Bootstrap : Using eth0:10.77.0.2<0>", "Bootstrap : Using docker0:172.17.0.1<0>")
				return log[:strings.Index(log, "Init START")] + "Init START\n" +
					j.Warn(r, "misc/socket.cc:500", "socketStartConnect",
						"socketStartConnect: Connect to 172.17.0.1<41001> failed : Connection refused")
			}
			return j.Start(r)
		})}, healthy},
		{"GPUDirect", "gdr-off", second, on(1, func(log string) string {
			log = strings.ReplaceAll(log, "GPU Direct RDMA Enabled", "GPU Direct RDMA Disabled")
			return strings.ReplaceAll(log, "/GDRDMA", "")
		}), healthy},
		{"missing NIC", "net-mismatch", second, on(1, func(log string) string {
			return strings.ReplaceAll(log, " [7]mlx5_7:1/IB", "")
		}), healthy},
	}
}

// settingCases are faults of settings and of what is installed.
func settingCases(j, old, few *Job) []Case {
	healthy := []File{j.nccl(nil)}
	return []Case{
		{"two releases", "version-mix", "", []File{j.nccl(func(r int, log string) string {
			if r/j.PerNode == 1 {
				return old.Start(r) + old.Warn(r, "bootstrap.cc:300", "bootstrapInit",
					"Mismatched NCCL version detected : rank 0 version 22809 rank %d version 22304", r)
			}
			return log
		})}, healthy},
		{"one channel", "channels-reduced", "NCCL_MAX_NCHANNELS", []File{few.nccl(nil)}, healthy},
	}
}
