package query

import (
	"fmt"
	"strings"
)

// CheckFile is what runs Check elsewhere: an Ansible playbook, a prolog of Slurm, or a Job of Kubernetes. program is where busbar is on nodes.
func CheckFile(kind, program string) (string, error) {
	switch kind {
	case "ansible":
		return checkAnsible, nil
	case "slurm":
		return strings.Replace(checkSlurm, "PROGRAM", "'"+strings.ReplaceAll(program, "'", `'\''`)+"'", 1), nil
	case "kube":
		return checkKube, nil
	}
	return "", fmt.Errorf("--emit %s: expected ansible, slurm or kube", kind)
}

// The playbook copies both programs and runs one rank a host: all of them meet at the first.
const checkAnsible = `# Written by busbar check --emit ansible. Run: ansible-playbook -i INVENTORY check.yml
# busbar and busbar-gpu are taken from the folder of this playbook; other folders with -e busbar_from=DIR.
---
- name: Check nodes with busbar
  hosts: all
  gather_facts: false
  vars:
    busbar_from: "{{ playbook_dir }}"
    busbar_dir: /tmp/busbar-check
    busbar_port: 29519
    busbar_first: "{{ hostvars[ansible_play_hosts_all[0]].ansible_host | default(ansible_play_hosts_all[0]) }}"
  tasks:
    - name: Make a folder
      ansible.builtin.file:
        path: "{{ busbar_dir }}"
        state: directory
        mode: "0755"
    - name: Copy the programs
      ansible.builtin.copy:
        src: "{{ busbar_from }}/{{ item }}"
        dest: "{{ busbar_dir }}/{{ item }}"
        mode: "0755"
      loop:
        - busbar
        - busbar-gpu
    - name: Check, one rank per host
      ansible.builtin.command:
        cmd: "{{ busbar_dir }}/busbar check --json"
      environment:
        RANK: "{{ ansible_play_hosts_all.index(inventory_hostname) | string }}"
        WORLD_SIZE: "{{ ansible_play_hosts_all | length | string }}"
        LOCAL_RANK: "0"
        LOCAL_WORLD_SIZE: "1"
        MASTER_ADDR: "{{ busbar_first }}"
        MASTER_PORT: "{{ busbar_port | string }}"
      register: busbar
      changed_when: false
      failed_when: busbar.rc > 1
    - name: Remove the folder
      ansible.builtin.file:
        path: "{{ busbar_dir }}"
        state: absent
    - name: Say which hosts are not healthy
      run_once: true
      vars:
        verdict: "{{ busbar.stdout | from_json }}"
      ansible.builtin.assert:
        that: verdict.nodes | selectattr('verdict', 'ne', 'healthy') | list | length == 0
        fail_msg: "{{ verdict.nodes | selectattr('verdict', 'ne', 'healthy') | list | to_json }}"
        success_msg: "all {{ verdict.nodes | length }} hosts are healthy"
`

// A prolog may not start a job step, so a node is judged by itself there; whole jobs are checked by their first step.
const checkSlurm = `#!/bin/sh
# Written by busbar check --emit slurm. As Prolog= of slurm.conf it judges the node by itself: an unhealthy one is drained with the reason, and the job
# waits for others. Where fleet agents run, PrologSlurmctld= with busbar order check judges the network as well (docs/fleet.md).
# A whole job is checked by its first step instead:
#   srun --ntasks-per-node 1 busbar check --junit check.xml || exit 1
program=PROGRAM # where busbar is on the node; slurmd's PATH is not a login's
program=${BUSBAR_PROGRAM:-$program}
node=${SLURMD_NODENAME:-$(hostname -s)}
say() { # to the system log, and to slurmd's
  logger -t busbar -p daemon.err "$1"
  echo "busbar: $1" >&2
}
why=$("$program" check -n 1 -q 2>&1)
code=$?
case $code in
0) exit 0 ;;
1)
  reason=$(printf '%s\n' "$why" | sed -n 's/^  //p' | head -n 3 | tr '\n' ';' | cut -c1-200)
  say "$node is unhealthy, job $SLURM_JOB_ID: $reason"
  scontrol update NodeName="$node" State=DRAIN Reason="busbar: $reason" || say "$node could not be drained"
  exit 1
  ;;
esac
# 2 and 3: it could not be checked; 126 and 127: there is no program. That is no fault of the node: the job starts, and the log says so.
say "$node was not checked, exit code $code, job $SLURM_JOB_ID starts: $(printf '%s' "$why" | head -n 2 | tr '\n' ' ' | cut -c1-200)"
exit 0
`

// An Indexed Job with one pod a node; the same container serves as an init container.
const checkKube = `# Written by busbar check --emit kube. Set parallelism and completions to the number of nodes, and the image.
# Indexed pods find the first one by the Service; exit code 1 of a pod is an unhealthy node.
apiVersion: v1
kind: Service
metadata:
  name: busbar-check
spec:
  clusterIP: None
  selector:
    job-name: busbar-check
---
apiVersion: batch/v1
kind: Job
metadata:
  name: busbar-check
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      subdomain: busbar-check
      restartPolicy: Never
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  job-name: busbar-check
      containers:
        - name: check
          image: busbar:latest
          command: ["sh", "-c", "RANK=$JOB_COMPLETION_INDEX exec busbar check --json"]
          env:
            - name: WORLD_SIZE
              value: "2"
            - name: LOCAL_RANK
              value: "0"
            - name: LOCAL_WORLD_SIZE
              value: "1"
            - name: MASTER_ADDR
              value: busbar-check-0.busbar-check
            - name: MASTER_PORT
              value: "29519"
          resources:
            limits:
              nvidia.com/gpu: 1
`
