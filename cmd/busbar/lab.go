package main

import "fmt"

// exitedWith ends the program with another program's exit code.
type exitedWith int

func (x exitedWith) Error() string { return fmt.Sprintf("exit code %d", int(x)) }

// labCmd is the family of commands about practice clusters.
type labCmd struct {
	Up     labUpCmd     `cmd:"" help:"Make a cluster file real on this machine."`
	Exec   labExecCmd   `cmd:"" help:"Run a program on a node of the lab, or on all."`
	Shell  labShellCmd  `cmd:"" help:"A shell on a node of the lab."`
	Status labStatusCmd `cmd:"" help:"Which labs are up, their nodes, addresses and faults."`
	Down   labDownCmd   `cmd:"" help:"End a lab and everything in it."`
	Fault  labFaultCmd  `cmd:"" help:"Break a link or a node of the lab."`
	Heal   labHealCmd   `cmd:"" help:"End faults."`
	Check  labCheckCmd  `cmd:"" help:"Measure collectives in a lab and hold the predictions against them."`
	Hold   labHoldCmd   `cmd:"" hidden:"" help:"The process that a lab lives in; lab up starts it."`
	Rank   labRankCmd   `cmd:"" hidden:"" help:"A rank of lab check, which starts it."`
}

// Help says what a lab is.
func (labCmd) Help() string {
	return "A lab is a small cluster file made real on this Linux machine: a network namespace per node, a shaped cable per NIC, switches as bridges. " +
		"It needs root, or a kernel that lets ordinary users make user namespaces.\n\n" +
		"Example:\n" +
		"  busbar lab up baskerville:2\n" +
		"  busbar lab exec all -- busbar bench -e 16M\n" +
		"  busbar lab down"
}

// labName are the flags of commands about one lab.
type labName struct {
	Name string `placeholder:"NAME" help:"Which lab, where several are up."`
}

type labUpCmd struct {
	common
	Cluster string `arg:"" help:"A cluster file, a preset, or anything map reads, with an optional node count: baskerville:2."`
	Layout  string `short:"l" placeholder:"NODESxGPUS" help:"2x2: two nodes, meant for two ranks each. None: all nodes, a rank per GPU."`
	Name    string `default:"lab" help:"The lab's name, where there are to be several."`
	labMake
}

// labMake is how a lab is made of a cluster.
type labMake struct {
	Scale    string `placeholder:"1/N" help:"Factor between the file's rates and the lab's. None: so that the fastest NIC has at most 1 Gb/s and all together 4 Gb/s; lab check takes half of that, so that links are measured and not processors."`
	Inside   string `enum:"auto,links,memory" default:"auto" help:"Ranks of a node talk over the imitated links between their GPUs (links), or through this machine's shared memory; auto: links where two cores can push them at the scale."`
	Spines   int    `default:"2" help:"Bridges that an entry for several spine switches becomes, at most."`
	MTU      int    `name:"mtu" placeholder:"BYTES" help:"MTU of all NICs. None: what the file states, else 9000."`
	Staging  string `placeholder:"RATE" help:"A half-duplex path through host memory of this rate (before scaling), which every byte to or from a node's NICs crosses: 14GB/s."`
	Local    bool   `name:"staging-local" help:"What ranks of a node send each other over TCP crosses that path too."`
	Rootless bool   `help:"In a user namespace, even as root."`
}

// Help ends with examples.
func (labUpCmd) Help() string {
	return "Makes the lab and leaves it running; `busbar lab down` ends it. Node names resolve inside. What the lab does not imitate is said.\n\n" +
		"Example:\n" +
		"  busbar lab up baskerville:4 -l 2x2\n" +
		"  busbar lab up cluster.yaml --scale 1/400 --name two"
}

type labExecCmd struct {
	common
	labName
	Layout string   `short:"l" placeholder:"NODESxPROCESSES" help:"With all: so many nodes and so many processes on each. None: as the lab was made."`
	Node   string   `arg:"" help:"A node's name, or all."`
	Args   []string `arg:"" passthrough:"" name:"command" help:"The program and its arguments, behind --."`
}

// Help ends with examples.
func (labExecCmd) Help() string {
	return "With all, the program runs once for each rank of the layout, ranks in the order of the nodes, told by BUSBAR_RANK, BUSBAR_SIZE, BUSBAR_LOCAL_RANK, BUSBAR_MEET, " +
		"BUSBAR_SECRET, BUSBAR_BIND and BUSBAR_TRANSPORT (and RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) who it is and where to meet; lines are preceded by the node. " +
		"The exit code is the worst one.\n\n" +
		"Example:\n" +
		"  busbar lab exec all -- busbar bench -e 16M\n" +
		"  busbar lab exec -l 2x2 all -- busbar bench --algo ring\n" +
		"  busbar lab exec node1 -- iperf3 -s"
}

type labShellCmd struct {
	labName
	Node string `arg:"" help:"A node's name."`
}

// Help ends with an example.
func (labShellCmd) Help() string {
	return "Runs $SHELL on the node, in a terminal of its own.\n\nExample:\n  busbar lab shell node0"
}

type labStatusCmd struct {
	common
	labName
}

// Help ends with an example.
func (labStatusCmd) Help() string {
	return "Exits with 1 where no lab is up.\n\nExample:\n  busbar lab status\n  busbar lab status --json"
}

type labDownCmd struct {
	common
	labName
	All bool `help:"All labs of this user."`
}

// Help ends with an example.
func (labDownCmd) Help() string {
	return "Ends the lab's programs and removes its namespaces and files; also what a lab left whose holder was killed.\n\nExample:\n  busbar lab down\n  busbar lab down --all"
}

type labFaultCmd struct {
	common
	labName
	Kind  string `arg:"" enum:"link,node" help:"link or node."`
	Where string `arg:"" help:"NODE:NIC of a link, NODE:GPU-GPU of one inside a node (rate only), or NODE."`
	What  string `arg:"" help:"Of a link: rate=50%, loss=1%, down, flap[=1s]; of a node: pause, kill."`
}

// Help ends with examples.
func (labFaultCmd) Help() string {
	return "Both directions of the link suffer. A paused node keeps its connections and does nothing; kill ends its programs, once. loss counts what a sender hands over at once, up to some tens of KB.\n\n" +
		"Example:\n" +
		"  busbar lab fault link node2:mlx5_0 rate=50%\n" +
		"  busbar lab fault link node0:gpu0-gpu1 rate=25%\n" +
		"  busbar lab fault node node1 pause\n" +
		"  busbar lab heal"
}

type labHealCmd struct {
	common
	labName
	What string `arg:"" optional:"" help:"NODE:NIC, NODE:GPU-GPU, or NODE for all of its own and its links; none: everything."`
}

// Help ends with an example.
func (labHealCmd) Help() string {
	return "Example:\n  busbar lab heal\n  busbar lab heal node2:mlx5_0"
}

type labHoldCmd struct{}

type labRankCmd struct {
	Work string `arg:"" help:"What to measure."`
}

type labCheckCmd struct {
	common
	Cluster string `arg:"" optional:"" help:"A cluster file or preset, as for lab up. None: the scenarios that docs/lab.md describes."`
	Layouts string `short:"l" default:"1x4,2x2,4x1" placeholder:"L1,L2,…" help:"Layouts, NODESxRANKS."`
	Algos   string `default:"ring,ring:interleaved,tree,hierarchical,halving_doubling" placeholder:"A1,A2,…" help:"Algorithms; ring:interleaved goes from node to node at every step."`
	Sizes   string `default:"512K,1M,4M,16M" placeholder:"S1,S2,…" help:"Sizes."`
	Op      string `default:"all_reduce" help:"The collective."`
	labMake
	Transport string   `enum:"auto,tcp" default:"auto" help:"auto: shared memory inside a node; tcp: sockets there too."`
	Slow      []string `placeholder:"NODE:NIC=25%" help:"Links that have less than their rate, in the lab and in the prediction."`
	Jobs      int      `default:"1" help:"Jobs side by side, on every other node each (2) and so on."`
	Iters     int      `default:"0" help:"Runs of each size that count; 0: by the time they take."`
	Quick     bool     `help:"Measure pairs of ranks for a moment only; predictions are then as good as the machine is quiet."`
	labStepFlags
	Plan   string  `placeholder:"DIR" help:"Instead of layouts and algorithms: a folder of busbar plan --hosts … --emit DIR for CLUSTER. Its order of ranks and the algorithm that is predicted to be fastest, beside the order in which the hosts were given and a flat ring; with --step also whole steps."`
	Only   string  `placeholder:"WORD" help:"Without CLUSTER: scenarios whose name has this in it."`
	Median float64 `name:"max-median" default:"0.10" help:"Exit 1 where the median of the errors is greater."`
	Worst  float64 `name:"max-worst" default:"0.35" help:"Exit 1 where the greatest error is greater."`
	Noise  float64 `name:"max-noise" default:"0.5" help:"Points whose runs differ by more do not count."`
	Points string  `short:"o" placeholder:"FILE" help:"Write the points for busbar validate."`
}

// labStepFlags are those of steps of training.
type labStepFlags struct {
	Step     string  `placeholder:"MODEL" help:"Instead of collectives: steps of data-parallel training of this model (busbar models), without and with overlap; without CLUSTER on Baskerville."`
	Shrink   int     `default:"64" placeholder:"N" help:"With --step: gradients and buckets are 1/N of their size, so that a step takes seconds."`
	Batch    int64   `default:"8" help:"With --step: sequences of a rank in a step."`
	Speed    float64 `default:"150" placeholder:"TFLOPS" help:"With --step: what a GPU computes."`
	StepAlgo string  `name:"step-algo" default:"ring" placeholder:"ALGORITHM" help:"With --step: how buckets are reduced."`
	Compress string  `default:"none,fp16" placeholder:"C1,C2,…" help:"With --step: how gradients travel: none, fp16, bf16, int8."`
}

// Help ends with examples.
func (labCheckCmd) Help() string {
	return "Makes a lab of the cluster, measures pairs of ranks (latency, copying, summing on this machine), runs the engine over layouts, algorithms and sizes, and " +
		"predicts each from the cluster file, the scale and the pairs' figures; collectives are not fitted. Algorithms whose times differ by more than 15% must also be predicted in their order. " +
		"Exit code 1 where a threshold is missed.\n\n" +
		"Example:\n" +
		"  busbar lab check baskerville:4\n" +
		"  busbar lab check cluster.yaml -l 4x1,8x1 --algos ring,tree --sizes 1M,16M --json\n" +
		"  busbar lab check --step gpt2-large -l 1x4,2x2,4x1\n" +
		"  busbar lab check cluster.yaml --plan run1 --sizes 64K,1M,8M --step gpt2-large\n" +
		"  busbar lab check --only staging"
}
