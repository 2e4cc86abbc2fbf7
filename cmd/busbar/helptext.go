package main

import (
	"strings"
	"sync"

	"busbar.dev/ask"
)

// helpSection is the text below a heading of a heading: what help tells of a command, its examples last; help TOPIC;
// names are what commands were called, or people guess, with what is meant.
func helpSection(heading string) string { return helpSections()[heading] }

var helpSections = sync.OnceValue(func() map[string]string {
	sections := map[string]string{}
	for _, q := range ask.Questions {
		sections[q.Name] = q.About
	}
	for part := range strings.SplitSeq(helpTexts, "\n# ") {
		heading, text, _ := strings.Cut(part, "\n")
		sections[heading] = strings.TrimSpace(text)
	}
	return sections
})

const helpTexts = `
# map
Without arguments, reads this machine. Files that it can read:

Nodes: nvidia-smi (topo -m, topo -p2p, -L, -q, -q -x, --query-gpu, nvlink), rocm-smi --showtopo, lspci -vv,
NCCL and RCCL topology XML, NCCL graph XML, lstopo XML, NCCL logs.

Fabrics: ibnetdiscover, iblinkinfo, ibstat, ibstatus, ibv_devinfo, perfquery, ibqueryerrors,
ethtool (also -i, -k, -g, -S), NetQ.

Schedulers: Slurm topology.conf and .yaml, scontrol show topology, Kubernetes nodes (also kubectl describe node).

Measurements: p2pBandwidthLatencyTest, nvbandwidth, nccl-tests.

Cluster files: busbar's own (docs/format/cluster.md).

The format is recognised by content; several sources join into one cluster. Nodes that differ in little are
described once, with what differs; -v describes all.

Examples:
  busbar map
  busbar map dgx-h100:16 --audit
  busbar map docs/examples/topo.txt:2 -o node.svg
  busbar map gpu001=docs/examples/topo.txt docs/examples/two-types.yaml -o cluster.yaml
  busbar map cluster.yaml --path gpu001/gpu0,big1/gpu3
  nvidia-smi topo -m | busbar map -

# check
Checks each node (GPU clocks, throttling, memory errors, PCIe, NVLink and fabric, read by busbar-gpu), then pairs of
nodes in rounds of disjoint pairs, then an all-reduce over all nodes. Up to 128 nodes every pair is measured. Of
more nodes, each is measured with about 60 others, near and far. With --hosts, pairs are measured by NCCL between
GPUs, with busbar-gpu on every host; otherwise between the ranks that a launcher starts, by RDMA with perftest where
all hosts have it, else over TCP. The output says which. GPUs are compared with their own limits, with GPUs of the
same model, and with the predicted time of a matrix product and a copy (of the cluster of -c). Pairs are compared
with the others, and outliers are measured again. Over TCP, lost packets and the segment size (MTU) are read from
the kernel's counters. A pair that does not end within its time limit is a finding.

Exit code 1: a node is unhealthy or unreachable, or one of its pairs is slow. The unhealthy and unreachable nodes
are printed as a hostlist.

Examples:
  srun -N 16 --ntasks-per-node 1 busbar check -o check.xml
  busbar check --hosts gpu[01-16]
  busbar check -c cluster.yaml --emit ansible > check.yml && ansible-playbook -i hosts check.yml
  busbar check -n 2 --json

# list
A preset is a cluster by name, with an optional node count: dgx-h100:16. A model's name lists its tensors in the
order in which a framework registers them. Rates of hardware are one direction, peaks are dense. -v and --json have
the sources. With the schema in a file, editors complete and check cluster files that begin with #
yaml-language-server: $schema=busbar.schema.json

Examples:
  busbar list models qwen
  busbar list hardware gpu --json
  busbar list schema
  busbar list presets
  busbar list models llama3-8b --json
  busbar list commands

# bench
Without a command, busbar bench runs the sweep: collectives on real memory, size after size, measured; no GPU, MPI
or Python is needed. Columns are those of nccl-tests. Under torchrun, srun, mpirun or in an indexed Kubernetes job
the ranks are the launcher's; alone, the command starts -n processes of its own. Ranks started manually take --rank,
-n and --meet. The job's secret is read from BUSBAR_SECRET.

Examples:
  busbar bench -n 4
  busbar bench -n 8 --op all_gather -b 1K -e 256M -f 4 --algo ring --check
  busbar bench -n 4 --transport tcp --json
  busbar bench -n 4 -o before.jsonl
  srun -N 2 --ntasks-per-node 2 busbar bench -b 1M -e 1G
  BUSBAR_SECRET=… busbar bench -n 2 --rank 0 --meet 10.0.0.1:29500

# bench pairs
Measures latency and bandwidth between every two ranks, each direction and both together, in rounds of disjoint
pairs, and names outliers: a host that is slow with all others, a slow pair, a slow direction. Exit code 1: an
outlier above a note. When there is an outlier, all pairs are measured up to twice more and the best of each counts,
so that only what is slow every time remains. Start one rank per host to test a network: pairs on one host share its
memory. With --alone one pair uses the network at a time; the default shows what a fabric can carry under load.

Examples:
  busbar bench pairs -n 4 --transport tcp
  busbar bench pairs -n 3 --alone -o pairs.svg --json
  srun -N 16 --ntasks-per-node 1 busbar bench pairs --size 16M

# bench step
Measures the communication of a step of data-parallel training: the model's real gradients, in the buckets of
PyTorch's DistributedDataParallel (25 MiB, the first 1 MiB, from the last parameter to the first), reduced by all
ranks. Compute is replaced by waiting. The result is the exposed communication: how long a step continues after its
compute has ended.

Examples:
  busbar bench step --model gpt2 -n 2 --iters 3
  busbar bench step --model vit-b16 --layout 1x2 --compute 200ms --overlap on --json
  srun -N 2 --ntasks-per-node 2 busbar bench step --model gpt2-large --dtype bfloat16

# bench gpu
Runs NCCL's collectives on GPUs and prints nccl-tests' columns. busbar-gpu does it, one process per rank, with the
NCCL that it finds (BUSBAR_NCCL=FILE names it): no MPI, no Python, no nccl-tests. With --by nccl-tests, or --algos
and --channels, it runs once with NCCL's choice and then with every algorithm, protocol and number of channels. It
prints the best setting of each size and what NCCL's choice lost against it. A setting that NCCL refuses is skipped,
and NCCL's message is printed. Settings reach the ranks of other hosts through env(1). Old releases of NCCL silently
use another algorithm when the requested one is impossible.

Examples:
  busbar bench gpu --op all --check -o gpu.jsonl
  busbar bench gpu --hosts gpu[01-04] -b 1M -e 1G
  busbar bench gpu -n 16 --launch "srun -N 2 --ntasks-per-node 8" --op all_gather
  busbar bench gpu --nccl-tests /opt/nccl-tests/build -g 8 -o gpu.jsonl
  busbar bench gpu --by nccl-tests -g 8 --algos ring,tree --channels auto,8,16 --dry-run
  busbar bench gpu --by nccl-tests --launch "mpirun -np 16 -H node0:8,node1:8" --op all_gather -c dgx-h100:2 -o gpu.jsonl

# bench gpu pairs
Sends and receives between every two GPUs through NCCL, each direction and both together, in rounds of disjoint
pairs, and names what stands out, as bench pairs does for hosts.

Examples:
  busbar bench gpu pairs --check
  busbar bench gpu pairs --hosts gpu[01-08] -n 1 --size 256M -o pairs.svg

# bench gpu node
Measures every GPU's memory rate, copies between host and GPU, matrix products with clocks and power while they run,
and copies between GPUs. Then it runs three collectives over all of them and checks the values. All of it takes less
than a minute. -o keeps the collectives.

Examples:
  busbar bench gpu node
  busbar bench gpu node --shapes 8192x8192x8192:bfloat16,4096x4096x4096:f8e4m3 --json

# bench rdma
Runs perftest (ib_write_bw and ib_write_lat, or those of --verb) between the hosts of a job, one rank per host:
every active port of a host with the same-numbered port of the others, in rounds of disjoint pairs, one rail at a
time, each direction alone and both at once. busbar starts servers and clients; the ranks meet as for bench pairs,
and no ssh is needed between hosts. perftest is needed on every host (https://github.com/linux-rdma/perftest), with
CUDA for --cuda. It names a host, port or link that is slow beside the others, rails below the rate of their links,
and hosts with fewer active ports. Exit code 1 when one of them is worse than a note. Where something stands out,
all rounds are measured up to twice more and the best of each counts.

Examples:
  srun -N 16 --ntasks-per-node 1 busbar bench rdma
  srun -N 4 --ntasks-per-node 1 busbar bench rdma --verb read --size 64K --qps 4 --devices mlx5_0,mlx5_3 --json
  srun -N 2 --ntasks-per-node 1 busbar bench rdma --cuda -o rdma.jsonl
  BUSBAR_SECRET=… busbar bench rdma -n 2 --rank 0 --meet 10.0.0.1:29500

# calibrate
Fits the parameters that no data sheet gives (usable share of a link's rate, latency of a hop, launch, cost of a
slice, rates through host memory) to measurements on a cluster, keeps those that the measurements determine, and
writes them into the cluster file with their range and source. A later prediction uses them and says so. The error
on sizes that were left out of the fit is printed beside the error of the fit.

With --check every measured point is predicted from its description alone, and the error is |predicted − measured| /
measured; -v lists the points. Points marked anomalous or of grade C are not scored; what cannot be predicted is
listed with the reason. Training runs are compared by the time of a step. docs/manual/calibrate.md describes the
form of the file.

Examples:
  busbar calibrate --live -c site.yaml --hosts gpu[01-02]
  busbar calibrate -c dgx-h100:2 --nccl 2.28 docs/examples/two-nodes.log -o site.yaml
  busbar calibrate --check docs/examples/points.jsonl
  busbar calibrate --check docs/examples/points.jsonl --set max-median=0.12 --set max-p90=0.4 --json
  busbar predict -c site.yaml --op all_gather

# lab
A lab is a small cluster file made real on this Linux machine: a network namespace per node, a shaped cable per NIC,
switches as bridges. It needs root, or a kernel that lets ordinary users make user namespaces.

Examples:
  busbar lab up baskerville:2
  busbar lab exec all -- busbar bench -e 16M
  busbar lab down

# lab up
Makes the lab and leaves it running; busbar lab down ends it. Node names resolve inside. What the lab does not
imitate is said.

Examples:
  busbar lab up baskerville:4 -l 2x2
  busbar lab up cluster.yaml --scale 1/400 --name two

# lab exec
With all, the program runs once for each rank of the layout, ranks in the order of the nodes, told by BUSBAR_RANK,
BUSBAR_SIZE, BUSBAR_LOCAL_RANK, BUSBAR_MEET, BUSBAR_SECRET, BUSBAR_BIND and BUSBAR_TRANSPORT (and RANK, WORLD_SIZE,
LOCAL_RANK, MASTER_ADDR, MASTER_PORT) who it is and where to meet; lines are preceded by the node. The exit code is
the worst one.

Examples:
  busbar lab exec all -- busbar bench -e 16M
  busbar lab exec -l 2x2 all -- busbar bench --algo ring
  busbar lab exec node1 -- iperf3 -s

# lab shell
Runs $SHELL on the node, in a terminal of its own.

Examples:
  busbar lab shell node0

# lab status
Exits with 1 where no lab is up.

Examples:
  busbar lab status
  busbar lab status --json

# lab down
Ends the lab's programs and removes its namespaces and files; also what a lab left whose holder was killed.

Examples:
  busbar lab down
  busbar lab down --all

# lab fault
Both directions of the link suffer. A paused node keeps its connections and does nothing; kill ends its programs,
once. loss counts what a sender hands over at once, up to some tens of KB.

Examples:
  busbar lab fault link node2:mlx5_0 rate=50%
  busbar lab fault link node0:gpu0-gpu1 rate=25%
  busbar lab fault node node1 pause
  busbar lab heal

# lab heal
Examples:
  busbar lab heal
  busbar lab heal node2:mlx5_0

# predict
Predicts how long a collective takes, by which algorithm and protocol NCCL would do it, what limits it, and which
setting would help. Sizes, algbw and busbw are those of nccl-tests. The parameters of the model were fitted on
published measurements; see docs/accuracy.md. --op moe_dispatch and moe_combine are the exchange of tokens with
their experts over NVLink or xGMI and RDMA, as DeepEP does it: a token is sent once to every node that holds one of
its experts, or with --set mode=low_latency directly to every expert. Routing is taken to be balanced.

Examples:
  busbar predict dgx-h100:2
  busbar predict -c baskerville --compare 1x4,2x2,4x1 --size 1.32GB -d bfloat16
  busbar predict -c dgx-h100:4 --op moe_dispatch -m qwen3-235b
  busbar predict -c dgx-h100:4 --op all_gather -b 1M -e 1G -f 4 --algo all
  busbar predict -c dgx-h100:8 -l 4x8 --nccl 2.21 --env NCCL_ALGO=Ring --json
  busbar predict -c docs/examples/rails.yaml -l 2x8 --size 14GB
  busbar predict -c baskerville -l 2x2 --size 1G --links
  busbar predict -l 2x2 --rounds --algo hierarchical
  busbar predict -c dgx-a100:2 -b 8 -e 8G -o curve.svg

# step
Predicts how long one training step takes and where the time goes: computing, waiting for the network, the
pipeline's bubble, the optimizer; how much memory each GPU needs; and what limits it. With --slow: the cost of slow
nodes. With --nodes: how the job scales; the work per node is constant (weak scaling), with --global-batch it is
divided (strong scaling). busbar goodput is about a whole run, with failures, checkpoints and cost. docs/steps.md
says what the model is and how far off it is on published runs. Exits with 1 where the job fits the GPUs' memory on
no layout.

Examples:
  busbar step -c dgx-h100:2 -m llama2-7b --parallel zero=3 --micro-batch 2
  busbar step -c dgx-h100 -m llama2-7b --parallel zero=3 --nodes 1-64
  busbar step -c baskerville -m gpt2-large --compare 1x4,2x2,4x1 --micro-batch 8 --json
  busbar step -c dgx-a100:48 -m gpt3-175b --parallel tp=8,pp=12 --global-batch 1536 --recompute full
  busbar step -c dgx-h100:2 -m llama2-13b --parallel tp=4,pp=4 --global-batch 16 -o step.svg
  busbar step -c dgx-h100:16 -m llama3-8b --parallel zero=2 --slow node3=20%
  busbar step -c dgx-a100:4 -m gpt3-2.7b --global-batch 64 --formulas

# plan
Searches the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees, what
replicas divide (ZeRO, FSDP) and among how many, micro-batches, the pipeline's schedule, recomputation, sequence
parallelism, the order of ranks, gradient buckets and compression, and what the host keeps. Settings that could be
among the best are priced as by busbar step; a lower bound rules the others out, so that nothing in the space is
better than what is shown. Ctrl-C gives the best so far, and how much better the rest could be.

Examples:
  busbar plan -c dgx-a100 --gpus 64 -m gpt3-13b --global-batch 512
  busbar plan -c dgx-h100:8 -m llama3-70b --global-batch 512 --parallel zero=1 --schedule 1f1b,interleaved,zero-bubble
  busbar plan -c dgx-h100:8 -m llama2-70b --global-batch 512 --set nic=200G,nics=4 --top 3 --json
  busbar plan -c dgx-h100:16 -m llama2-13b --global-batch 512 --objective cost --price 2.50/gpu-hour
  busbar plan -c cluster.yaml -m llama2-7b --global-batch 512 --emit run1 --hosts gpu[01-08]

# place
Finds which of the free nodes a job should take. Sets of nodes are priced as steps of the job on the cluster's map,
with error bars, and compared with what the scheduler would take; placements that cannot be told apart are said to
tie. The job is given as for step. Other jobs on the network are not in the prediction.

Examples:
  busbar place -c dgx-h100:64 -m llama3-8b --nodes 8 --free node[3-20,40-63]
  busbar place -c dgx-h100:64 -m llama3-70b --parallel tp=8 --nodes 8 --free node[3-20,40-63]
  busbar map topology.conf 'gpu[01-16]=dgx-h100' -o site.yaml; sinfo -N -o '%N %t' | busbar place -c site.yaml -m llama3-8b --nodes 4 --free -
  kubectl get nodes,pods -A -o json > nodes.json; busbar place -c site.yaml -m llama3-8b --nodes 4 --free nodes.json -o kueue=-
  busbar place -c gb200-nvl72:4 -m llama3-405b --parallel tp=4,pp=8 --nodes 16 --free node[0-3]-t[00-11] -o slurm=-

# goodput
How much of a run's time goes into steps that count when nodes fail, and how often to save: with synchronous and
asynchronous checkpoints, with spare nodes, and with jobs that continue with fewer replicas. With --tokens and
--price: how long the run takes and what it costs. What is not given comes from published figures, whose sources are
printed. With --mtbf fleet the time between failures is that of the fleet's own nodes, as busbar serve has seen them
(BUSBAR_SERVER names it).

Examples:
  busbar goodput -c dgx-h100:16 -m llama3-8b --tokens 1T
  busbar goodput -c dgx-h100:128 -m llama3-70b --parallel tp=8,pp=4,zero=1 --storage 200GB/s --set spares=2
  busbar goodput -c dgx-h100:2048 -m llama3-405b --parallel tp=8,pp=16,zero=1 --global-batch 2048 --tokens 15.6T --price 2.50/gpu-hour
  busbar goodput -c dgx-h100:16 -m llama3-8b --parallel zero=1 --mtbf 90d/node --set repair-time=3d --set elastic=1
  busbar goodput -c dgx-h100 -m llama3-70b --parallel tp=8,pp=4,zero=1 --nodes 1-16384

# exec
Starts a program as one rank of a job, in place of itself. Finds which rank and GPU this process is from the
launcher's variables (torchrun, Open MPI, MPICH, Slurm, Kubernetes, or BUSBAR_RANK and BUSBAR_LOCAL_RANK), binds it
to the cores of its GPU's NUMA domain that it is allowed, prefers that domain's memory, and sets NCCL's variables
and the ones PyTorch expects. What is already set in the environment stays. A program that ends in .py and may not
be executed is started with $PYTHON (default python3) -u.

Examples:
  srun --cpu-bind=none busbar exec --plan run1 -- python train.py
  torchrun --nproc_per_node 8 --no_python busbar exec -v -- python train.py
  mpirun -n 8 busbar exec -- ./all_reduce_perf -g 1
  srun busbar exec --plan run1 --profile -- python train.py
  busbar exec --local-rank 3 --dry-run --json -- true

# doctor
Reads NCCL and RCCL logs (any release, inside logs of Slurm, torchrun, mpirun, Kubernetes or Docker), outputs of
nccl-tests, nvidia-smi, dcgmi diag, lspci, ibstat, ethtool, perfquery, dmesg, lsmod, topology XML,
environments, launch scripts and manifests, Python tracebacks, and sentences about what was seen. All inputs are
treated as one job.

A table of bench or nccl-tests alone is compared, size by size, with the time predicted for the hardware (-c), with
its error bar, and with the thresholds that cloud operators publish. It says which part of the curve is wrong and
what that pattern means. Traces of PyTorch's profiler show how much of a step is computing, exposed
communication, copies and idle time, and which rank is late. With -c every collective is compared with its prediction; with -m the step is too.

--explain shows what NCCL set up (NCCL_DEBUG=INFO): rings, trees, channels, which hosts talk through which NIC, and
how much of an all-reduce passes each.

Each finding has the cause, the fix, the confidence and the lines of evidence. Root causes come first, their
consequences after; -v shows all of it. Where no cause is likely, three things to collect are named, each with the
cause that it decides. Exit code 1: a fault was described or found. 3: nothing in the inputs is known, so nothing was
examined. Secrets in quoted lines are hidden. --rules adds causes of your own (docs/doctor.md).

Examples:
  busbar doctor docs/examples/job.log
  busbar doctor "all_reduce drops at three nodes"
  busbar doctor docs/examples/allreduce.txt -c dgx-h100:2
  busbar doctor docs/examples/trace -c dgx-h100:1 -l 1x2 -m gpt2 --seq 64
  busbar doctor --explain docs/examples/rings.log
  busbar doctor docs/examples/job.log docs/examples/topo.txt --mask addresses -o markdown
  busbar doctor docs/examples/ -o findings.md
  busbar doctor --live --fail-on error
  ssh head busbar fleet nodes --json | busbar doctor docs/examples/job.log -
  srun ./train.sh 2>&1 | busbar doctor -

# diff
Compares results row by row: medians with their 95% intervals, the change, and the probability p that chance alone
makes such a difference (Mann-Whitney U test, Benjamini-Hochberg correction for the number of rows: at most a share
of --set alpha= of unchanged tables shows a change). ± is the distance from the median to the ends of its 95%
interval, or to the outermost values with fewer than six observations. ~ means no change: p is too large, the
medians differ by less than 3%, or one median lies within the ± of the other. -v also lists rows that only one file
has. Keep at least six runs in each file (bench -o appends), eight for tables of many rows: runs are then compared
with runs, including the noise between them. Output of nccl-tests has one value per row: put several runs into one
file. Layouts of a prediction are compared by predict --compare and step --compare.

Examples:
  busbar diff docs/examples/before.jsonl docs/examples/after.jsonl
  busbar diff docs/examples/before.jsonl docs/examples/after.jsonl --threshold 10 --json
  for i in 1 2 3 4 5 6; do busbar bench -n 4 -o new.jsonl; done

# hang
Reads NCCL's RAS answers (2.24 to 2.30), dumps of PyTorch's flight recorder of all ranks, logs of PyTorch, NCCL,
launchers and the kernel, stacks (faulthandler, py-spy), NCCL Inspector's files and the GPU output of DCGM and
nvidia-smi, and asks a running job's RAS service. It names the ranks, the communicator, the collective and the kind
of fault: late, exited, killed, stopped, no report, another operation, another size, never joined, opposite order,
stuck kernel, GPU error, network, checkpoint, data loading. One RAS answer covers the whole job. All inputs are
treated as one job.

Exit code 0: the job is healthy, or it was asked while it runs and waits for what may end by itself. 1: it hangs,
stalled, failed or is slow. 3: the verdict is unknown, or nobody answered.

Examples:
  busbar hang docs/examples/hang
  busbar hang docs/examples/hang --json
  busbar hang --pid 4711
  busbar hang --ras localhost --dumps /tmp
  busbar hang --job 4242 --watch
  busbar hang --pods train/llama
  busbar hang --hosts node[01-16] logs/

# jobs
Reads what busbar's profiler plugin for NCCL (busbar exec --profile, NCCL 2.24 to 2.30) or NCCL's Inspector recorded
of every operation, and shows per communicator, operation and size: calls, time, bus bandwidth, and what is expected
of them by predict. The time of a collective is split into transfer and waiting for the rank that came last, without
synchronized clocks: that rank's own call is the shortest.

Exit code 1: a rank is late by more than 3% of the time, or a transfer takes longer than the error bar allows.

Examples:
  busbar jobs
  busbar jobs -c dgx-h100:2 --watch
  busbar jobs docs/examples/jobs -c dgx-h100:2
  busbar jobs /dev/shm --since 10s --json

# serve
Serves the page: topology, predictions, training steps, plans and the doctor, each answer computed as the command of
the same name does. The agents of other machines report to it (busbar agent --join). It stores their events, runs
ordered measurements (busbar fleet order) and finds unhealthy nodes (busbar fleet nodes). At the first start it
prints an address that logs in once; busbar serve token add creates tokens. Answers read no files of this machine
except its own topology. Uploads stay in the folder of --data.

Examples:
  busbar serve
  busbar serve --listen 127.0.0.1:8080 --data /var/lib/busbar
  busbar serve --bus-listen 0.0.0.0:7642 --tls-self-signed --webhook https://chat.example/hook
  busbar serve --nats tls://nats1:4222,tls://nats2:4222 --nats-creds hub.creds
  busbar serve --listen 0.0.0.0:7641 --tls-cert server.pem --tls-key server.key

# serve token
Examples:
  busbar serve token add alice --role order
  busbar serve token node gpu01 -o gpu01.creds

# serve token add
A running server accepts it immediately. Scripts send it: Authorization: Bearer TOKEN.

Examples:
  busbar serve token add alice --role order

# serve token list
Examples:
  busbar serve token list --json

# serve token revoke
Examples:
  busbar serve token revoke alice

# serve token node
The credentials let an agent publish under its own name and answer requests, and nothing else. A running server
accepts them immediately, and rejects revoked ones within seconds.

Examples:
  busbar serve token node gpu01 -o gpu01.creds
  busbar serve token node gpu01 --revoke

# agent
The node's side of a fleet: reports this node's devices, port states and heartbeats to the server, and runs the
measurements that are ordered. Events wait on disk until the server has stored them, so that servers may restart and
networks may fail; an agent also starts without a server. It measures in a process of its own within the limits of
the order, and refuses while a job uses the network. It runs no programs but itself, busbar-gpu, nvidia-smi and
those of perftest. --json prints events as JSON lines. Exit code 3: another agent has the same name or uses the same
folder.

Examples:
  busbar agent --join tls://head:7642 --creds /etc/busbar/node.creds
  BUSBAR_CREDS=node.creds busbar agent --join tls://head:7642 --tls-ca ca.pem --bind ib0 --json

# fleet
busbar serve knows the nodes of a fleet by what their agents report, and runs the measurements that are ordered.

Examples:
  busbar fleet nodes --bad
  busbar fleet order pairs --wait
  busbar fleet links gpu01,gpu02

# fleet nodes
Lists the nodes of a fleet as busbar serve knows them: state, activity and findings. With --bad the output is a
Slurm hostlist of nodes with a certain fault of their own that is not improving. Slow paths between nodes count
against neither node. The reasons go to standard error.

Examples:
  busbar fleet nodes
  scontrol show node | busbar fleet nodes --slurm -
  busbar fleet nodes --bad --json --server https://head:7641 --token-file token
  bad=$(busbar fleet nodes --bad) || [ -z "$bad" ] || scontrol update state=drain reason=busbar nodename="$bad"

# fleet order
Examples:
  busbar fleet order pairs --wait
  busbar fleet order list --all

# fleet order pairs
Every pair is measured by itself: a node that fails affects its pair only. Nodes that are unreachable, have left or
refuse are listed as left out; busy ones are asked again later in the sweep. busbar serve finds faults by comparing
sweeps over time: order one every hour.

Examples:
  busbar fleet order pairs --wait
  busbar fleet order pairs --every 1h --from 00:30 --max-rate 5GB/s
  busbar fleet order pairs --nodes gpu[001-512] --rounds 16 --every 10min

# fleet order collective
One group over all nodes, one rank per node. The page stores and shows the rows. If a node does not join, the
measurement fails.

Examples:
  busbar fleet order collective --wait
  busbar fleet order collective --nodes gpu[01-08] --op all_gather --size 1M,64M --every 1d --from 03:00

# fleet order gpu
Agents start busbar-gpu. NCCL runs a collective over all GPUs of all nodes, and results are verified; with --pairs,
NCCL sends between one GPU of each node of every pair. Nodes without busbar-gpu, a driver or a GPU are listed as
left out with the reason.

Examples:
  busbar fleet order gpu --wait
  busbar fleet order gpu --pairs --nodes gpu[01-16] --every 6h

# fleet order rdma
Agents run ib_write_bw and ib_write_lat of perftest between disjoint pairs of nodes, one rail after the other:
bandwidth each way, and latency. Nodes without perftest or an active RDMA port are listed as left out with the
reason. RDMA has a history of its own, apart from that of TCP.

Examples:
  busbar fleet order rdma --wait
  busbar fleet order rdma --nodes gpu[001-512] --rounds 16 --every 1h

# fleet order check
Exit code 0: all nodes are healthy, which one line on standard error says; 1: the unhealthy ones are on standard
output as a hostlist, with reasons on standard error; 2: wrong usage, nothing was checked; 3: no answer in time, or
no node ever joined. A node that never joined while others did is unhealthy, and the others are measured. It takes
precedence over other orders, and each part takes a few seconds at most. A node that looks slow is measured a second
time, and is unhealthy only if it is slow again.

Examples:
  busbar fleet order check --nodes gpu[01-04]
  busbar fleet order check --nodes "$SLURM_JOB_NODELIST" --job "$SLURM_JOB_ID" --server https://head:7641 --token-file /etc/busbar/token

# fleet order list
Lists what each order measures, or the job that it checks nodes for; its progress, interval, next start, and the
token that gave it. A check that measures a second time is two orders.

Examples:
  busbar fleet order list --all

# fleet order watch
Shows the progress of an order until it ends; of a repeating one, until its running or next sweep ends. Progress
goes to standard error: one changing line on a terminal, else a line at the start and one per round. If the server
restarts meanwhile, it waits. Exit code 1: nothing was measured, or a node is unhealthy.

Examples:
  busbar fleet order watch 4f2a9c0d1e3b

# fleet order cancel
Examples:
  busbar fleet order cancel 4f2a9c0d1e3b

# fleet links
Samples, median and failures of each direction.

Examples:
  busbar fleet links gpu01,gpu02

# version
Examples:
  busbar version --json

# completion
Examples:
  source <(busbar completion bash)
  busbar completion fish > ~/.config/fish/completions/busbar.fish

# man
Examples:
  busbar man predict | man -l -
  busbar man --dir /usr/local/share/man/man1

# self-test
Runs each part once on a case whose answer is known: this machine, collectives in memory, predictions, the
doctor. It needs no GPU, no network and no rights; it takes seconds. Exit code 1: a check failed.

Examples:
  busbar self-test

# help units
Sizes as in nccl-tests: 64K, 1M and 1G are 1024-based; 1.32GB is 1.32e9 bytes, 1GiB is 2^30. GB is 10^9 bytes.
Rates are GB/s (10^9 bytes per second) in one direction; Gb/s, 400G and 100G are bits per second of a network.
busbw is the bus bandwidth of nccl-tests. Times are s, ms, us; 90d and 5y where they are long.
In JSON: _s seconds, _bytes bytes, _GBps 10^9 bytes per second, one direction.
MFU is the share of the GPUs' dense 16-bit peak. A range (low to high) holds about 90% of measurements.

# help exit-codes
0    done
1    done, and something is wrong: a finding, a missed threshold, a job that does not fit
2    bad usage or bad input
3    could not do it: missing rights, a dead peer, a limit
130  interrupted

# help clusters
Wherever a command takes a cluster (-c), it is one of these, with an optional node count:
  dgx-h100:4        a preset (busbar list presets)
  site.yaml         a cluster file (docs/format/cluster.md); busbar map -o site.yaml writes one
  topo.txt:8        any file that map reads, here as eight such nodes
  8xh100, 2x4090    GPUs of one machine by themselves; h100x8 and a100:4 are taken too
-l 2x4 takes two nodes with four GPUs each. --nic 100G, --gpu and --set change what is there.

# help models
Wherever a command takes a model (-m), it is one of these:
  llama3-8b                          a name (busbar list models, busbar list models qwen)
  config.json                        a configuration of Hugging Face, or the folder that it is in
  params=20B,layers=48,hidden=6144   dimensions; heads, kv_heads, ffn, vocab and context too
--parallel dp=8,tp=4,pp=2 or --tp 4 --pp 2 divides it; --framework NAME says what runs it (busbar list frameworks).

# names
presets: list presets
models: list models
hardware: list hardware
gpus, list gpus, list gpu: list hardware gpu
infer, inference, serve -m, serve --model: predict --op all_reduce (busbar prices training and collectives, not serving)
frameworks: list frameworks
causes: list causes
commands: list commands
schema: list schema
experts, moe: predict --op moe_dispatch
simulate, nccl: predict
sched, schedule, rounds: predict --rounds
scale, scaling: step --nodes 1-64
envelope: step --formulas
train, memory: step
network: need
validate: calibrate --check
fit: calibrate
measure: bench
trace, profile: doctor TRACE…
explain: doctor --explain
why, diagnose, debug, analyze, slow: doctor
audit: map --audit
topo, topology: map
cost, price: goodput --tokens N --price 2.50/gpu-hour
checkpoint, failures: goodput
nodes: fleet nodes
order: fleet order
links: fleet links
demo, web, ui: serve
launch, emit: plan --emit DIR
run: exec
health, preflight: check
stuck: hang
top, ps: jobs
compare, bench diff: diff
selftest: self-test
doctor bench: doctor TABLE
doctor explain: doctor --explain LOG
`
