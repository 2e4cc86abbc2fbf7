package launch

import (
	"fmt"
	"strings"
)

// kubernetes is an indexed Job, one pod a node, in which torchrun starts the ranks. A service
// without an address gives pods their names.
func (w *writer) kubernetes() (string, string) {
	if !w.even {
		return "", uneven + ", and pods of a job are alike"
	}
	name := jobName(w.p.Job.Model)
	var b strings.Builder
	b.WriteString(w.header("Kubernetes: an indexed Job, one pod a node."))
	fmt.Fprintf(&b, `# First: kubectl create configmap %[1]s-plan --from-file=plan.json
# To set: image (with busbar and torchrun), the program in args, and the RDMA resource of your device plugin.
# The order of pods is not that of the plan's hosts; pods of one leaf switch are preferred where nodes carry
# the label network.topology.nvidia.com/leaf.
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: %[1]s
---
apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s
spec:
  completionMode: Indexed
  completions: %[2]d
  parallelism: %[2]d
  backoffLimit: 0
  template:
    spec:
      subdomain: %[1]s
      restartPolicy: Never
      affinity:
        podAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: network.topology.nvidia.com/leaf
                labelSelector:
                  matchLabels:
                    job-name: %[1]s
      initContainers:
        # Nothing trains before the pods have shown that they reach each other and add up right.
        - name: preflight
          image: IMAGE-TO-SET
          command: [%[3]s]
          env:
            - name: BUSBAR_SIZE
              value: "%[2]d"
            - name: MASTER_ADDR
              value: %[1]s-0.%[1]s
            - name: MASTER_PORT
              value: "29600"
      containers:
        - name: train
          image: IMAGE-TO-SET
          command: [torchrun]
          args:
            - --nnodes=%[2]d
            - --nproc_per_node=%[4]d
            - --node_rank=$(JOB_COMPLETION_INDEX)
            - --master_addr=%[1]s-0.%[1]s
            - --master_port=29500
            - --no_python
            - busbar
            - exec
            - --plan=/plan
            - --
            - PROGRAM-TO-SET
          resources:
            limits:
              nvidia.com/gpu: %[4]d
          securityContext:
            capabilities:
              add: [IPC_LOCK]  # RDMA pins memory
          volumeMounts:
            - name: plan
              mountPath: /plan
            - name: shm
              mountPath: /dev/shm
      volumes:
        - name: plan
          configMap:
            name: %[1]s-plan
        - name: shm  # NCCL's shared memory; the default of 64 MiB is too small
          emptyDir:
            medium: Memory
`, name, len(w.hosts), `"`+strings.Join(strings.Fields(preflightWords), `", "`)+`"`, w.each)
	return b.String(), ""
}
