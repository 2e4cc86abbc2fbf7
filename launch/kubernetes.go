package launch

import (
	"fmt"
	"strings"
)

// leafLabel is the label by which NVIDIA's topograph tells pods below one leaf switch.
const leafLabel = "network.topology.nvidia.com/leaf"

// mostLeaves bounds the jobs of a set.
const mostLeaves = 64

// kubernetes is an indexed Job, one pod per node, in which torchrun starts the ranks. A service
// without an address gives pods their names.
func (w *writer) kubernetes() (string, string) {
	if !w.even {
		return "", uneven + ", and pods of a job are alike"
	}
	name := jobName(w.p.Job.Model)
	var b strings.Builder
	b.WriteString(w.header("Kubernetes: an indexed Job, one pod per node."))
	fmt.Fprintf(&b, `# First: kubectl create configmap %[1]s-plan --from-file=PLAN-FOLDER (all files of this folder)
# To set: image (with busbar and torchrun), %[5]sthe claim of storage that all nodes see, and the RDMA resource of your device plugin.
# A pod that is evicted is made anew and the others end with it: all meet again and go on from the last checkpoint.
# The order of pods is not that of the plan's hosts%[4]s; pods of one leaf switch are preferred where nodes carry
# the label %[3]s.
apiVersion: v1
kind: Service
metadata:
  name: "%[1]s"
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: "%[1]s"
---
apiVersion: batch/v1
kind: Job
metadata:
  name: "%[1]s"
spec:
  completionMode: Indexed
  completions: %[2]d
  parallelism: %[2]d
  backoffLimit: %[6]d  # pods that failed, of ten losses of a node
  podFailurePolicy:
    rules:
      - action: Ignore  # evictions do not count
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
  template:
    spec:
`, name, len(w.hosts), leafLabel, w.setInstead(), w.programToSet(), 10*len(w.hosts))
	p := pods{w: w, name: name, master: name + "-0." + name, subdomain: name, near: true, hosts: w.hosts}
	b.WriteString(indent(p.spec(), 6))
	return b.String(), ""
}

// setInstead points to the set of jobs where there is one.
func (w *writer) setInstead() string {
	if _, reason := w.jobset(); reason == "" {
		return " (jobset.yaml keeps those of a leaf together, and leaves in their order)"
	}
	return ""
}

// program is what pods start: the framework's script, or a word to replace.
func (w *writer) program() []string {
	if w.p.job != nil && w.p.job.Framework != nil {
		return []string{"sh", "/plan/" + w.p.job.Framework.Name + ".sh"}
	}
	return []string{"PROGRAM-TO-SET"}
}

// programToSet asks for the program where none is known.
func (w *writer) programToSet() string {
	if len(w.program()) > 1 {
		return ""
	}
	return "the program in args, "
}

// jobset is a JobSet with a job for every leaf switch: its pods get the ranks that the plan has below that leaf, so
// that rings cross between leaves as seldom as they can.
func (w *writer) jobset() (string, string) {
	switch {
	case !w.even:
		return "", uneven + ", and pods of a job are alike"
	case len(w.p.Leaves) == 0 && len(w.hosts) > 1:
		return "", "which nodes share a leaf switch is not known, or the order of ranks comes back to a leaf; job.yaml " +
			"starts the same ranks"
	case len(w.hosts) == 1:
		return "", "there is one node; job.yaml starts it"
	case len(w.p.Leaves) == 1 && w.p.Rails > 1:
		return "", fmt.Sprintf("all nodes are below the same %d leaf switches (rails); job.yaml says the same", w.p.Rails)
	case len(w.p.Leaves) == 1:
		return "", "all nodes are below one leaf switch; job.yaml says the same"
	case len(w.p.Leaves) > mostLeaves:
		return "", fmt.Sprintf("%d leaf switches; a set has %d jobs at most here", len(w.p.Leaves), mostLeaves)
	}
	name := jobName(w.p.Job.Model)
	var b strings.Builder
	b.WriteString(w.header("Kubernetes with JobSet (jobset.x-k8s.io/v1alpha2): a job for every leaf switch, one pod per " +
		"node."))
	fmt.Fprintf(&b, `# First: kubectl create configmap %[1]s-plan --from-file=PLAN-FOLDER (all files of this folder)
# To set: image (with busbar and torchrun), %[2]sthe claim of storage that all nodes see, and the RDMA resource of your device plugin.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: "%[1]s"
`, name, w.programToSet())
	if w.p.Placeholders {
		fmt.Fprintf(&b, "  annotations:\n    # Each job has a leaf of its own: nodes must carry this label.\n    "+
			"alpha.jobset.sigs.k8s.io/exclusive-topology: %s\n", leafLabel)
	}
	b.WriteString("spec:\n  failurePolicy:\n    maxRestarts: 1000  # all pods are started again, from the last " +
		"checkpoint\n  network:\n    enableDNSHostnames: true\n    publishNotReadyAddresses: true\n  replicatedJobs:\n")
	first := 0
	for i, n := range w.p.Leaves {
		fmt.Fprintf(&b, `    - name: leaf%[1]d
      replicas: 1
      template:
        spec:
          completionMode: Indexed
          completions: %[2]d
          parallelism: %[2]d
          backoffLimit: 0
          template:
            spec:
`, i, n)
		p := pods{
			w: w, name: name, master: name + "-leaf0-0-0." + name, first: first, set: true, hosts: w.hosts[first : first+n],
		}
		b.WriteString(indent(p.spec(), 14))
		first += n
	}
	return b.String(), ""
}

// pods are those of one job.
type pods struct {
	w         *writer
	name      string
	master    string // address of the first pod
	subdomain string // "" where somebody else sets it
	first     int    // number of the job's first node
	set       bool   // there are more jobs
	near      bool   // prefer one leaf
	hosts     []Host
}

// shell is a command that knows the node's number; $$ is Kubernetes' word for a dollar sign.
func (p *pods) shell(text string) string {
	return fmt.Sprintf("NODE=$$((%d + JOB_COMPLETION_INDEX)); ", p.first) + text
}

func (p *pods) spec() string {
	w := p.w
	var b strings.Builder
	if p.subdomain != "" {
		fmt.Fprintf(&b, "subdomain: %q\n", p.subdomain)
	}
	b.WriteString("restartPolicy: Never\n")
	b.WriteString(p.affinity())
	words := strings.Fields(preflightWords)
	command := `["` + strings.Join(words, `", "`) + `"]`
	if p.set {
		command = fmt.Sprintf("[sh, -c, %q]", p.shell("BUSBAR_RANK=$NODE exec "+preflightWords))
	}
	fmt.Fprintf(&b, `initContainers:
  # Nothing trains before the pods have shown that they reach each other and add up right.
  - name: preflight
    image: IMAGE-TO-SET
    command: %s
    env:
      - name: BUSBAR_SIZE
        value: "%d"
      - name: MASTER_ADDR
        value: %s
      - name: MASTER_PORT
        value: "29600"
containers:
  - name: train
    image: IMAGE-TO-SET
`, command, len(w.hosts), p.master)
	torchrun := []string{
		"torchrun", fmt.Sprintf("--nnodes=%d", len(w.hosts)), fmt.Sprintf("--nproc_per_node=%d", w.each),
		"--node_rank=$(JOB_COMPLETION_INDEX)", "--master_addr=" + p.master, "--master_port=29500", "--no_python", "busbar",
		"exec", "--plan=/plan", "--",
	}
	if p.set {
		torchrun[3] = "--node_rank=$NODE"
		torchrun = append(torchrun, `\"$@\"`)
		fmt.Fprintf(&b, "    command: [sh, -c, \"%s\", sh]\n    args:\n      - %s\n",
			p.shell("exec "+strings.Join(torchrun, " ")), strings.Join(w.program(), "\n      - "))
	} else {
		fmt.Fprintf(&b, "    command: [torchrun]\n    args:\n      - %s\n",
			strings.Join(append(torchrun[1:], w.program()...), "\n      - "))
	}
	fmt.Fprintf(&b, `    env:
      - name: BUSBAR_HOST  # the node's name; a pod's own is another
        valueFrom:
          fieldRef:
            fieldPath: spec.nodeName
      - name: SAVE
        value: "/checkpoints/%[2]s"
    resources:
      limits:
        nvidia.com/gpu: %[1]d
    securityContext:
      capabilities:
        add: [IPC_LOCK]  # RDMA pins memory
    volumeMounts:
      - name: plan
        mountPath: /plan
      - name: checkpoints
        mountPath: /checkpoints
      - name: shm
        mountPath: /dev/shm
volumes:
  - name: checkpoints
    persistentVolumeClaim:
      claimName: CLAIM-TO-SET
  - name: plan
    configMap:
      name: "%[2]s-plan"
  - name: shm  # NCCL's shared memory; the default of 64 MiB is too small
    emptyDir:
      medium: Memory
`, w.each, p.name)
	return b.String()
}

// affinity keeps pods on the plan's hosts where those are known, and near each other.
func (p *pods) affinity() string {
	named := !p.w.p.Placeholders
	if !named && !p.near {
		return ""
	}
	var b strings.Builder
	b.WriteString("affinity:\n")
	if named {
		b.WriteString(`  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: kubernetes.io/hostname
              operator: In
              values:
`)
		for _, h := range p.hosts {
			fmt.Fprintf(&b, "                - %q\n", h.Name)
		}
	}
	if p.near {
		fmt.Fprintf(&b, `  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: %s
          labelSelector:
            matchLabels:
              job-name: %q
`, leafLabel, p.name)
	}
	return b.String()
}

// indent moves a text's lines to the right.
func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+pad) + "\n"
}
