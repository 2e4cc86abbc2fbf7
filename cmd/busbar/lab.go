package main

import "busbar.dev/lab"

// labCmd is the family of commands about practice clusters.
type labCmd struct {
	Up     labUpCmd     `cmd:"" help:"Start a cluster file as network namespaces on this machine."`
	Exec   labExecCmd   `cmd:"" help:"Run a program on a node of the lab, or on all."`
	Shell  labShellCmd  `cmd:"" help:"Open a shell on a node of the lab."`
	Status labStatusCmd `cmd:"" help:"List running labs with their nodes, addresses and faults."`
	Down   labDownCmd   `cmd:"" help:"End a lab and everything in it."`
	Fault  labFaultCmd  `cmd:"" help:"Inject a fault into a link or a node of the lab."`
	Heal   labRepairCmd `cmd:"" help:"Remove faults."`
	Hold   labHoldCmd   `cmd:"" hidden:"" help:"Process that holds a lab; started by lab up."`
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
	Name string `placeholder:"NAME" help:"Name of the lab, when several are up."`
}

type labUpCmd struct {
	common
	Cluster string `arg:"" help:"Cluster file, preset, or any file that map reads, with an optional node count: baskerville:2."`
	Layout  string `short:"l" placeholder:"NODESxGPUS" help:"Layout: 2x2 is two nodes with two ranks each (default: all nodes, one rank per GPU)."`
	Name    string `default:"lab" help:"Name of the lab, to run several (default lab)."`
	lab.Settings
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
	Layout string   `short:"l" placeholder:"NODESxPROCESSES" help:"With all: layout, NODESxPROCESSES (default: the lab's own)."`
	Node   string   `arg:"" help:"Name of a node, or all."`
	Args   []string `arg:"" passthrough:"" name:"command" help:"Program and its arguments, after --."`
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
	Node string `arg:"" help:"Name of a node."`
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
	Where string `arg:"" help:"NODE:NIC for a link, NODE:GPU-GPU for a link inside a node (rate only), or NODE."`
	What  string `arg:"" help:"Fault: rate=50%, loss=1%, down or flap[=1s] of a link; pause or kill of a node."`
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

type labRepairCmd struct {
	common
	labName
	What string `arg:"" optional:"" help:"NODE:NIC, NODE:GPU-GPU, or NODE for the node and its links (default: everything)."`
}

// Help ends with an example.
func (labRepairCmd) Help() string {
	return "Example:\n  busbar lab heal\n  busbar lab heal node2:mlx5_0"
}

type labHoldCmd struct{}
