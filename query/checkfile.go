package query

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"busbar.dev/measure"
)

// CheckFile is what runs a Check elsewhere, with the flags it has: an Ansible playbook, a prolog of Slurm, or a Job of
// Kubernetes. program is where busbar is. A cluster's file is copied by the playbook, mounted in pods, and read under
// its absolute path by the prolog.
func CheckFile(ctx context.Context, env Env, kind, program string, q Check) (string, error) {
	if q.Hosts != "" {
		return "", fmt.Errorf("--emit %s and --hosts %s: expected one of them; what is printed runs on the nodes themselves",
			kind, q.Hosts)
	}
	if _, err := q.expects(ctx, env); err != nil {
		return "", err
	}
	file, err := q.clusterFile()
	if err != nil {
		return "", err
	}
	base := "cluster" + filepath.Ext(file)
	if !plainWord.MatchString(base) {
		base = "cluster"
	}
	text, in := "", ""
	switch kind {
	case "ansible":
		text, in = checkAnsible, "{{ busbar_dir.path }}/"+base
	case "slurm":
		text, in = checkSlurm, file
	case "kube", "kubernetes":
		text, in = checkKube, "/etc/busbar/"+base
	default:
		return "", fmt.Errorf("--emit %s: expected ansible, slurm or kube", kind)
	}
	if file != "" {
		q.Cluster = in
	} else {
		text = withoutFile.ReplaceAllString(text, "")
	}
	flags := CommandLine(nil, q)[1:]
	for _, w := range append([]string{program, file}, flags...) {
		// A line break ends a comment, and what follows would be executed; others end up as other characters in YAML.
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(w) {
			return "", fmt.Errorf("--emit %s: %+q: expected printable characters, without line breaks; rename it", kind, w)
		}
	}
	line, argv, quiet := "", "", "--no-load"
	if q.NoLoad {
		quiet = ""
	}
	for _, w := range flags {
		line += " " + shellWord(w)
		word := unsafeWord(w)
		if w == in { // which is a template
			word = yamlWord(w)
		}
		argv += "\n              - " + word
	}
	return strings.NewReplacer(
		"@PROGRAM@", shellWord(program), "@FOLDER@", unsafeWord(filepath.Dir(program)), "@FLAGS@", line, "@ARGV@", argv,
		"@QUIET@", quiet,
		// Kubernetes replaces $(NAME), also within a shell's quotes.
		"@YAMLLINE@", yamlWord("RANK=$JOB_COMPLETION_INDEX exec busbar check --json"+strings.ReplaceAll(line, "$", "$$")),
		"@FILEWORD@", unsafeWord(file), "@FILE@", shellWord(file), "@BASE@", base, "#F ", "",
		"@LIMIT@", fmt.Sprint((2 * measure.AloneTime).Seconds()), "@WORST@", fmt.Sprint(measure.AloneTime.Seconds()),
	).Replace(text), nil
}

// withoutFile are the lines of a template that are for a cluster's file.
var withoutFile = regexp.MustCompile(`(?m)^#F .*\n`)

// clusterFile is the absolute path of the file that -c names; "" where it is a preset or is not given. What is neither
// cannot be handed on as one file.
func (q *Check) clusterFile() (string, error) {
	if q.Cluster == "" {
		return "", nil
	}
	if s, err := os.Stat(q.Cluster); err == nil && s.Mode().IsRegular() {
		return filepath.Abs(q.Cluster)
	}
	if presetName(q.Cluster) != "" {
		return "", nil
	}
	return "", fmt.Errorf("-c %s with --emit: expected one file or a preset, which nodes can read; busbar map … -o "+
		"cluster.yaml writes one", q.Cluster)
}

// yamlWord is a text in YAML's double quotes, which read JSON's.
func yamlWord(s string) string {
	data, _ := json.Marshal(s) // a string always can
	return string(data)
}

// unsafeWord is a text that Ansible takes as it is: all others are templates, which run programs.
func unsafeWord(s string) string { return "!unsafe " + yamlWord(s) }

// The playbook copies both programs and runs one rank a host: all of them meet at the first.
const checkAnsible = `# Written by busbar check --emit ansible. Run: ansible-playbook -i INVENTORY check.yml
# busbar and busbar-gpu are taken from the folder of the busbar that wrote this; other folders with -e busbar_from=DIR.
#F # The cluster's file is copied to every host; another one with -e busbar_cluster=FILE.
---
- name: Check nodes with busbar
  hosts: all
  gather_facts: false
  vars:
    busbar_from: @FOLDER@
#F     busbar_cluster: @FILEWORD@
    busbar_port: 29519
    busbar_first: "{{ hostvars[ansible_play_hosts_all[0]].ansible_host | default(ansible_play_hosts_all[0]) }}"
  tasks:
    - name: Check in a folder of its own
      block:
        - name: Make a folder that only this user can write to
          ansible.builtin.tempfile:
            state: directory
            prefix: busbar-check.
          register: busbar_dir
        - name: Copy the programs
          ansible.builtin.copy:
            src: "{{ busbar_from }}/{{ item }}"
            dest: "{{ busbar_dir.path }}/{{ item }}"
            mode: "0755"
          loop:
            - busbar
            - busbar-gpu
#F         - name: Copy the cluster's file
#F           ansible.builtin.copy:
#F             src: "{{ busbar_cluster }}"
#F             dest: "{{ busbar_dir.path }}/@BASE@"
#F             mode: "0644"
        - name: Check, one rank per host
          ansible.builtin.command:
            argv:
              - "{{ busbar_dir.path }}/busbar"
              - check
              - --json@ARGV@
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
      always:
        - name: Remove the folder
          ansible.builtin.file:
            path: "{{ busbar_dir.path }}"
            state: absent
          when: busbar_dir.path is defined
    - name: Say which hosts are not healthy
      run_once: true
      vars:
        verdict: "{{ busbar.stdout | from_json }}"
        gpus: "{{ verdict.nodes | map(attribute='gpus') | sum }}"
      ansible.builtin.assert:
        that: verdict.nodes | rejectattr('verdict', 'in', ['healthy', 'incomplete']) | list | length == 0
        fail_msg: "{{ verdict.nodes | rejectattr('verdict', 'in', ['healthy', 'incomplete']) | list | to_json }}"
        success_msg: "all {{ verdict.nodes | length }} hosts are healthy; {{ 'no' if gpus | int == 0 else gpus }} GPUs checked{{ verdict.notes | map('regex_replace', '^', '; note: ') | join }}"
`

// A prolog may not start a job step, so a node is judged by itself there; whole jobs are checked by their first step.
// The same script is the health check: slurmd ends that after 60 seconds, looks at no exit code, and jobs may run.
const checkSlurm = `#!/bin/sh
# Written by busbar check --emit slurm, for Prolog= and HealthCheckProgram= of slurm.conf. It judges the node by itself: an unhealthy one is drained with
# the reason. As a prolog it exits 1 then, and the job waits for other nodes. As a health check it loads no GPU, and others' reasons stay beside its own.
# Where fleet agents run, PrologSlurmctld= with busbar fleet order check judges the network as well (docs/fleet.md).
# A whole job is checked by its first step instead:
#   srun --ntasks-per-node 1 busbar check -o check.xml || exit 1
program=@PROGRAM@ # where busbar is on the node; slurmd has no PATH of a login
program=${BUSBAR_PROGRAM:-$program}
#F # The cluster's file must be on every node under the same path: @FILE@
#F # Where it cannot be read, the node is not checked, the job starts, and the log says so.
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
limit=@LIMIT@ # seconds; the check of one node ends by itself within @WORST@, also with a driver that hangs, so that longer is a file system that hangs or the like
mode= about=", job $SLURM_JOB_ID" starts=", job $SLURM_JOB_ID starts"
if [ -z "$SLURM_JOB_ID" ]; then
  limit=40 mode=@QUIET@ about= starts= # of the 60 that slurmd gives
fi
node=${SLURMD_NODENAME:-$(hostname -s)}
# slurmd gives a health check no SLURM_CONF: where slurm.conf is not in its usual place, export it here.
say() { # to the system log, and to slurmd's
  logger -t busbar -p daemon.err "$1"
  echo "busbar: $1" >&2
}
drain() { # with a part of the reason that is ours: parts end in "; ", and those of others stay
  ours="[HC] busbar: $1"
  if ! now=$(SLURM_TIME_FORMAT=standard timeout 5 scontrol show node "$node" --oneliner) || [ "${now#*NodeName=}" = "$now" ]; then
    # There may be a reason, which must stay. scontrol may refuse to drain without one.
    timeout 10 scontrol update NodeName="$node" State=DRAIN || say "$node could not be drained: its present reason cannot be read, and stays"
    return
  fi
  # A reason ends with [user@time]; of one that does not, what follows is kept with it.
  now=$(printf '%s\n' "$now" | tr '\n' ' ' | LC_ALL=C sed '/ Reason=/!d; s/ Reason=/\n/; s/.*\n//
/ \[[^][]*@[^][]*\]/!s/ ResumeAfterTime=.*//; s/\(.*\) \[[^][]*@[^][]*\].*/\1/; s/ *$//')
  case $now in *"$ours"*) return ;; esac
  rest=$(printf '%s\n' "$now" | sed 's/; /\n/g' | sed '/^$/d; /^\[HC\] busbar:/d; s/$/; /' | tr -d '\n')
  timeout 10 scontrol update NodeName="$node" State=DRAIN Reason="$rest$ours" || say "$node could not be drained"
}
why=$(timeout -k 5 "$limit" "$program" check -n 1 -q@FLAGS@ $mode 2>&1)
code=$?
case $code in
0)
  case $why in *"no GPUs checked"*) [ -z "$SLURM_JOB_ID" ] || say "$node: no GPUs checked$starts" ;; esac
  exit 0
  ;;
1)
  reason=$(printf '%s\n' "$why" | sed -n '/^  /{s///; s/;/,/g; p}' | head -n 3 | tr '\n' ',' | sed 's/,$//; s/,\([^ ]\)/, \1/g' | cut -c1-200)
  reason=${reason:-the check found it unhealthy and printed no reason}
  say "$node is unhealthy$about: $reason"
  drain "$reason"
  exit 1
  ;;
esac
# 2 and 3: it could not be checked; 124 and 137: not within the limit; 126 and 127: there is no program. That is no fault of the node: the job starts, and the log says so.
say "$node was not checked, exit code $code$starts: $(printf '%s' "$why" | head -n 2 | tr '\n' ' ' | cut -c1-200)"
exit 0
`

// An Indexed Job with one pod a node; the same container serves as an init container.
const checkKube = `# Written by busbar check --emit kube. Set parallelism and completions to the number of nodes, and the image.
# Indexed pods find the first one by the Service; exit code 1 of a pod is an unhealthy node.
#F # The cluster's file is in a ConfigMap: kubectl create configmap busbar-cluster --from-file=@BASE@=@FILE@
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
          command: ["sh", "-c", @YAMLLINE@]
#F           volumeMounts:
#F             - name: cluster
#F               mountPath: /etc/busbar
          env:
            - name: BUSBAR_NODE # a pod's host name is not its node's
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
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
#F       volumes:
#F         - name: cluster
#F           configMap:
#F             name: busbar-cluster
`
