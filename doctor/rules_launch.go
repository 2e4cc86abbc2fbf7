package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// launchRules are about ranks that do not come together for a reason outside of NCCL:
// names, launchers, the address of the store, one rank that is busy.
func launchRules() []Rule {
	const (
		torchRun = "https://docs.pytorch.org/docs/stable/elastic/run.html"
		ddp      = "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
		dns      = "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/"
	)
	return []Rule{
		{"name-unknown", "a host name that does not resolve", "a host of the job is called by a name that nobody knows", dns, []string{"rendezvous", "connect-failed", "launcher-refused", "gloo-interface", "nccl-error", "init-hang"}, nameUnknown},
		{"launcher-refused", "ssh or a launcher's daemon that could not be started", "the launcher cannot start processes on the other hosts", "https://docs.open-mpi.org/en/main/launching-apps/ssh.html", []string{"rendezvous", "connect-failed", "nccl-error", "init-hang"}, launcherRefused},
		{"slurm-step-resources", "srun or sbatch that refuses a step or a job", "Slurm does not give the job or its step what is asked for", "https://slurm.schedmd.com/srun.html", []string{"rendezvous", "launcher-refused", "init-hang"}, slurmRefused},
		{"restart-loop", "Slurm's message that it ended the job", "the job was ended from outside", "https://slurm.schedmd.com/job_reason_codes.html", []string{"rank-killed", "peer-died", "collective-timeout", "nccl-error", "connect-failed"}, slurmEnded},
		{"master-address", "an address that no host can have, or the loopback, where ranks should meet", "MASTER_ADDR leads nowhere", torchRun, []string{"rendezvous", "connect-failed", "nccl-error"}, masterAddress},
		{"gloo-interface", "Gloo that falls back to the loopback or cannot build its mesh", "Gloo speaks from the wrong network interface", "https://docs.pytorch.org/docs/stable/distributed.html#common-environment-variables", []string{"rendezvous", "connect-failed", "nccl-error", "init-hang"}, glooInterface},
		{"rank-busy", "data preparation, saving or loading right before others gave up waiting", "one rank works for longer than the others wait", "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group", []string{"collective-timeout", "rendezvous", "nccl-error", "connect-failed"}, rankBusy},
		{"unused-parameters", "DDP's error about a reduction that was not finished", "parameters get no gradient and DDP waits for them", ddp, []string{"collective-timeout", "nccl-error"}, unusedParameters},
		{"service-mesh", "a side-car proxy that is told of", "a proxy takes the connections of NCCL", "https://istio.io/latest/docs/ops/configuration/traffic-management/protocol-selection/", []string{"connect-failed", "libfabric", "init-incomplete", "init-hang", "nccl-error"}, serviceMesh},
		{"nccl-library", "symbols of NCCL that the loaded library lacks, two packages of NCCL", "another NCCL is loaded than the framework was built for", "https://docs.nvidia.com/deeplearning/nccl/install-guide/", []string{"driver-mix", "nccl-error"}, ncclLibrary},
	}
}

func nameUnknown(c *Case) *finding.Finding {
	list := c.All(evidence.NameUnknown)
	if len(list) == 0 {
		return nil
	}
	name, only := "", true
	for _, o := range list {
		if name == "" {
			name = o.Arg(0)
		}
		only = only && o.Arg(1) == "ipv6"
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "A host name does not resolve",
		Cause: "A launcher or the store asks for a host by a name that its resolver does not know: the pod or its headless service is not ready yet, the search domain is missing, /etc/hosts differs between hosts, or MASTER_ADDR is misspelt.",
		Fix:   "getent hosts NAME on every host and in every container; a headless service and dnsPolicy: ClusterFirst (with hostNetwork ClusterFirstWithHostNet) in Kubernetes, and wait until it resolves before the start; else the address instead of the name.", Evidence: c.quotes(evidence.NameUnknown),
	}
	if name != "" {
		f.Title = "The host name " + name + " does not resolve"
	}
	if only { // the IPv4 address may be there
		if !c.broken() && !c.Has(evidence.Rendezvous) {
			return nil
		}
		f.Severity, f.Confidence = finding.Warn, 0.6
	}
	return f
}

func launcherRefused(c *Case) *finding.Finding {
	o := c.First(evidence.LaunchRefused)
	if o == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "The launcher cannot start processes on another host",
		Cause: "mpirun, deepspeed and pdsh start their processes by ssh without a password; that failed, so nothing of the job ran there. NCCL is not reached yet.",
		Fix:   "ssh HOST hostname from the host (and as the user, and in the container) that launches must work without a question: keys, known_hosts, the port of sshd; every host must find the same program and libraries.", Evidence: c.quotes(evidence.LaunchRefused),
	}
}

// masterAddress is for ranks that look for the store at an address that cannot be it.
func masterAddress(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Ranks look for the first one at an address that no host has",
		Cause: "The address in the message is none of a host: a host name of digits only is read as a number, a variable is empty or holds a mask, or the name resolves wrongly.",
		Fix:   "getent hosts \"$MASTER_ADDR\" on every host must give the reachable address of the first one; use its address, or a name with a letter; --rdzv-endpoint=HOST:PORT names the same everywhere.",
	}
	for _, o := range c.All(evidence.PeerNet) {
		if o.Arg(0) == "impossible" {
			f.Evidence = c.quotes(o, "MASTER_ADDR")
			return f
		}
	}
	addr := c.value("MASTER_ADDR")
	if (addr == "localhost" || strings.HasPrefix(addr, "127.")) && c.multinode() && (c.broken() || c.Has(evidence.Rendezvous)) {
		f.Title = "MASTER_ADDR is the loopback in a job of several hosts"
		f.Cause = "MASTER_ADDR=" + addr + ": every host looks for the first rank on itself."
		f.Evidence = c.quotes("MASTER_ADDR", evidence.Rendezvous)
		return f
	}
	return nil
}

func glooInterface(c *Case) *finding.Finding {
	loop, mesh := c.Has(evidence.GlooLoopback), c.Has(evidence.Gloo)
	if !mesh {
		return nil // on one host the loopback is right
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.75, Title: "Gloo cannot build its mesh: most likely the wrong interface",
		Cause: "PyTorch's CPU groups (Gloo) take the interface that the host's own name leads to, not that of NCCL. With several interfaces, or a name in /etc/hosts that is 127.0.1.1, ranks of other hosts cannot reach it.",
		Fix:   "GLOO_SOCKET_IFNAME=<interface of the cluster's network> in the environment of every worker (with Ray or a launcher on each host, not only where the job is started); getent hosts $(hostname) must give the host's own reachable address.", Evidence: c.quotes(evidence.GlooLoopback, evidence.Gloo, "GLOO_SOCKET_IFNAME"),
	}
	if loop {
		f.Confidence, f.Title = 0.9, "Gloo falls back to the loopback: the host's name leads to no interface"
	}
	return f
}

// rankBusy is for time-outs that say nothing of the network: one rank was still at
// work. The surest sign is work that had taken as long as the others wait.
func rankBusy(c *Case) *finding.Finding {
	limit := 0
	for _, o := range c.All(evidence.TimeLimit) {
		limit = max(limit, atoi(o.Arg(0)))
	}
	doing := map[string]string{"data": "prepares data", "save": "saves a checkpoint", "load": "loads or downloads", "bar": "works through a long loop"}
	f := &finding.Finding{
		Severity: finding.Error,
		Fix:      "Do that work before the job starts, or on all ranks; a longer time-out where it cannot be helped: init_process_group(timeout=…), ddp_timeout of a trainer, and 0 shards to one file system at a time.",
	}
	for _, o := range c.All(evidence.BusyBefore) {
		spent := atoi(o.Arg(1))
		near := limit > 0 && spent > 0 && 10*spent >= 9*limit && 10*spent <= 11*limit
		sure := 0.0
		switch what := o.Arg(0); {
		case near:
			sure = 0.88
		case what == "data" && (spent < 0 || spent >= 1500):
			sure = 0.8
		case what == "data":
			sure = 0.65
		case what == "save", what == "load":
			sure = 0.72
		}
		if sure <= f.Confidence {
			continue
		}
		f.Confidence = sure
		f.Title = "A time-out while one rank " + doing[o.Arg(0)]
		f.Cause = "The others wait in a barrier or collective for a rank that has not hung but is still at work; the network is not the cause."
		if near {
			f.Cause = fmt.Sprintf("It had gone on for %d s when the time-out of %d s ended the job. ", spent, limit) + f.Cause
		}
		f.Evidence = c.quotes(o, evidence.Watchdog)
	}
	if f.Confidence == 0 {
		return nil
	}
	return f
}

func unusedParameters(c *Case) *finding.Finding {
	return c.stated(evidence.UnusedParams, 0.92, "Some parameters get no gradient, and DDP waits for them",
		"DistributedDataParallel reduces every parameter's gradient in each step. Parameters that the loss does not depend on, on all ranks or on some, leave the reduction unfinished: an error in the next step, or a hang.",
		"Every output of forward into the loss, or requires_grad=False for what is not trained; find_unused_parameters=True at the price of a walk over the graph; TORCH_DISTRIBUTED_DEBUG=INFO names the parameters.")
}

func serviceMesh(c *Case) *finding.Finding {
	if !c.about("mesh") || !c.broken() {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.85, Title: "A service mesh stands between the ranks",
		Cause: "The side-car of a mesh (Envoy) takes every TCP connection of a pod. NCCL's, Gloo's and libfabric's protocols are no HTTP, use ports that the kernel picks, and expect the peer's own address.",
		Fix:   "No injection for training pods (sidecar.istio.io/inject: \"false\"), or all ports left out (traffic.sidecar.istio.io/excludeInboundPorts and excludeOutboundPorts).", Evidence: c.told("mesh", "hang", "crash"),
	}
}

func ncclLibrary(c *Case) *finding.Finding {
	versions := map[string]bool{}
	for _, o := range c.All(evidence.NCCLPackage) {
		versions[o.Arg(0)] = true
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.92, Title: "Another NCCL is loaded than the framework was built for",
		Cause: "The library that is found first lacks a function that the framework calls: an older libnccl in LD_LIBRARY_PATH, of the system or of a second package wins over the one that belongs to it.",
		Fix:   "pip list | grep nccl and keep the one that torch requires; LD_LIBRARY_PATH without other NCCLs; ldd libtorch_cuda.so | grep nccl shows what is loaded.", Evidence: c.quotes(evidence.LibraryMix, evidence.NCCLPackage),
	}
	switch {
	case c.Has(evidence.LibraryMix):
	case len(versions) > 1 && c.broken():
		f.Severity, f.Confidence, f.Title = finding.Warn, 0.5, "Two packages of NCCL are installed"
		f.Cause = "Both install the same libnccl.so.2 under one folder, so the framework may load the one of another CUDA. " + f.Cause
	default:
		return nil
	}
	return f
}

func slurmRefused(c *Case) *finding.Finding {
	o := c.First(evidence.SlurmError, "step", "account")
	if o == nil {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "Slurm refuses the job or its step",
		Cause: "The step asks for more than the job holds, or for what another step still holds: nothing of the program has run.",
		Fix:   "scontrol show job ID beside the step's options; srun --overlap, or --exact with its own share; --cpus-per-task again for srun; --gres and --constraint as sinfo -o '%N %G %f' lists them.", Evidence: c.quotes(o),
	}
	if o.Arg(0) == "account" {
		f.Cause = "Account, partition or QOS of the job are not valid for this user, or its limits are reached: nothing of the program has run."
		f.Fix = "sacctmgr show assoc user=$USER format=account,partition,qos; sinfo -s; give -A, -p and --qos that are listed there."
	}
	return f
}

func slurmEnded(c *Case) *finding.Finding {
	o := c.First(evidence.SlurmError, "ended")
	if o == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "Slurm ended the job",
		Cause: "Its time limit was over, it was preempted, or a node failed: what ranks print after that follows from it.",
		Fix:   "sacct -j ID -o JobID,State,ExitCode,Elapsed,Timelimit,NodeList; a longer --time, checkpoints before it (--signal=B:USR1@300), --requeue.", Evidence: c.quotes(o),
	}
}
