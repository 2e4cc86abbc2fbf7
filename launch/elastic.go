package launch

import (
	"fmt"
	"strings"
)

// elasticReason is why a job cannot go on with fewer nodes than the plan has; "" where it can.
func (w *writer) elasticReason() string {
	switch {
	case w.jobless() != "":
		return w.jobless()
	case len(w.hosts) < 2:
		return "there is one node"
	case !w.even:
		return uneven + ", and elastic agents are alike"
	case w.p.job.Framework == nil:
		return "no framework was given; with --framework ddp, fsdp or hf a job continues with fewer nodes"
	}
	if f := w.p.job.Framework; f.Name != "ddp" && f.Name != "fsdp" && f.Name != "hf" {
		return "the configuration of " + f.Title +
			" fixes the number of ranks; JobSet and Slurm's --requeue start all of them again from the last checkpoint"
	}
	if each := w.p.job.Split.TP; w.each%each != 0 {
		return fmt.Sprintf("tp=%d does not fit a node of %d GPUs", each, w.each)
	}
	return ""
}

// elastic is torchrun with a rendezvous: nodes may leave and come back, and every change starts the ranks again from
// the last checkpoint with as many as there are.
func (w *writer) elastic() (string, string) {
	if reason := w.elasticReason(); reason != "" {
		return "", reason
	}
	first := "MASTER_ADDR=${MASTER_ADDR:?set MASTER_ADDR: the name of a node that stays}\n"
	if !w.p.Placeholders {
		first = fmt.Sprintf("MASTER_ADDR=${MASTER_ADDR:-%s}  # a node that stays\n", w.hosts[0].Name)
	}
	program := w.p.job.Framework.Name + ".sh"
	return "#!/bin/sh\n" + w.header(fmt.Sprintf("Elastic torchrun, on every node: elastic.sh [PROGRAM ARGUMENTS…]; %s "+
		"without one. When a node is lost the others go on from the last checkpoint, and when it is back it joins again.",
		program)) +
		fmt.
			Sprintf(`# Ranks get numbers as nodes come, so that the order of the plan and its binding of processors do not hold. Fewer nodes compute more micro-batches, so that the global batch stays; where they do not divide it, it is the next smaller that they do.
set -eu
PLAN=${BUSBAR_PLAN:-$(cd "$(dirname "$0")" && pwd)}
# ---- To set: every line may also be given in the environment. ----------------------------------
%[1]sMIN_NODES=${MIN_NODES:-%[2]d}                # fewer wait for others
MAX_NODES=${MAX_NODES:-%[3]d}
RESTARTS=${RESTARTS:-100}                 # that ranks are started again, of failures and of nodes that come
# ---------------------------------------------------------------------------------------------
set -a; . "$PLAN/nccl.env"; set +a
# With a store that agents share, a node that comes back waits for an address that nobody writes again (PyTorch 2.4 to 2.11).
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
[ $# -gt 0 ] || set -- "$PLAN/%[4]s"
case $1 in *.py) [ -x "$1" ] || set -- "${PYTHON:-python3}" -u "$@" ;; esac
exec torchrun --nnodes="$MIN_NODES:$MAX_NODES" --nproc_per_node=%[5]d --max_restarts="$RESTARTS" --rdzv_backend=c10d --rdzv_id=%[6]s \
  --rdzv_endpoint="$MASTER_ADDR:${MASTER_PORT:-29400}" --rdzv_conf=join_timeout=600,last_call_timeout=30 --monitor_interval=5 --no_python "$@"
`, first, (len(w.hosts)+1)/2, len(w.hosts), program, w.each, jobName(w.p.Job.Model)), ""
}

// trainJob is a TrainJob of Kubeflow's Trainer, whose runtime torch-distributed starts torchrun on every node.
func (w *writer) trainJob() (string, string) {
	switch {
	case w.jobless() != "":
		return "", w.jobless()
	case !w.even:
		return "", uneven + ", and nodes of a TrainJob are alike"
	}
	name := jobName(w.p.Job.Model)
	program := "PROGRAM-TO-SET"
	if f := w.p.job.Framework; f != nil {
		program = "/plan/" + f.Name + ".sh"
	}
	var b strings.Builder
	b.WriteString(w.header("Kubernetes with Kubeflow Trainer (trainer.kubeflow.org/v1alpha1): torchrun on every node, " +
		"started again after failures as its runtime says."))
	fmt.Fprintf(&b, `# First: kubectl create configmap %[1]s-plan --from-file=PLAN-FOLDER (all files of this folder)
# To set: image (with busbar, torchrun and the framework), and the claim of storage that all nodes see.
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: "%[1]s"
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    image: IMAGE-TO-SET
    numNodes: %[2]d
    numProcPerNode: %[3]d
    command: [torchrun]
    args: ["--no_python", "busbar", "exec", "--plan=/plan", "--", "sh", %[4]q]
    resourcesPerNode:
      limits:
        nvidia.com/gpu: %[3]d
  podTemplateOverrides:
    - targetJobs:
        - name: node
      spec:
        containers:
          - name: node
            env:
              - name: SAVE
                value: "/checkpoints/%[1]s"
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
              name: "%[1]s-plan"
          - name: shm  # NCCL's shared memory; the default of 64 MiB is too small
            emptyDir:
              medium: Memory
`, name, len(w.hosts), w.each, program)
	return b.String(), ""
}
