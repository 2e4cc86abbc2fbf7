package query

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCheckProlog runs the prolog with programs of our own: an unhealthy node is drained, one that could not be checked
// is told of and is not.
func TestCheckProlog(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for name, tt := range map[string]struct {
		// What busbar exits with, the job, and the node's reason before; after a ! what scontrol does when it is asked.
		code, job, reason string
		exit              int
		drained, says     string
	}{
		"good": {"0", "42", "", 0, "", ""},
		"bad": {
			"1", "42", "", 1, "Reason=[HC] busbar: GPU 6 has 8 PCIe lanes of 16, at most\n", "n7 is unhealthy, job 42: GPU 6",
		},
		"could not":   {"3", "42", "", 0, "", "n7 was not checked, exit code 3, job 42 starts: n7: unhealthy"},
		"usage":       {"2", "42", "", 0, "", "n7 was not checked, exit code 2, job 42 starts"},
		"none":        {"127", "42", "", 0, "", "n7 was not checked, exit code 127, job 42 starts"},
		"check good":  {"0", "", "not responding", 0, "", ""},
		"check bad":   {"1", "", "", 1, "Reason=[HC] busbar: GPU 6", "n7 is unhealthy: GPU 6"},
		"check could": {"3", "", "", 0, "", "n7 was not checked, exit code 3: n7"},
		"others": {
			"1", "", "[HC] nvsentinel: XID 79; bad disk", 1,
			"Reason=[HC] nvsentinel: XID 79; bad disk; [HC] busbar: GPU 6 has 8",
			"n7 is unhealthy",
		},
		"ours of before": {
			"1", "", "[HC] busbar: GPU 1 is gone; bad disk", 1, "Reason=bad disk; [HC] busbar: GPU 6 has 8", "n7 is unhealthy",
		},
		"not read": {
			"1", "", "!exit 124", 1, "State=DRAIN\n", "n7 could not be drained: its present reason cannot be read, and stays",
		},
		"no answer": {"1", "42", "!true", 1, "State=DRAIN\n", "n7 could not be drained"},
		"no reason": {"1", "", "!echo NodeName=n7 ResumeAfterTime=None", 1, "Reason=[HC] busbar: GPU 6", "n7 is unhealthy"},
		"another clock": {
			"1", "", "!echo 'NodeName=n7 Reason=bad [x@y] disk Reason=z [root@Nov 19 10:00:00] ResumeAfterTime=None'", 1,
			"Reason=bad [x@y] disk Reason=z; [HC] busbar: GPU 6", "n7 is unhealthy",
		},
		"no stamp": {
			"1", "", "!printf 'NodeName=n7 Reason=bad\\ndisk ResumeAfterTime=None\\n'", 1, "Reason=bad disk; [HC] busbar: GPU 6",
			"n7 is unhealthy",
		},
		"silent": {
			"1 silent", "", "bad disk", 1,
			"Reason=bad disk; [HC] busbar: the check found it unhealthy and printed no reason\n",
			"printed no reason",
		},
		"again": {"1", "", "bad disk; [HC] busbar: GPU 6 has 8 PCIe lanes of 16, at most", 1, "", "n7 is unhealthy"},
	} {
		dir := t.TempDir()
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
		code, silent, _ := strings.Cut(tt.code, " ")
		program := file("it's busbar",
			"#!/bin/sh\necho \"$@\" >> "+dir+"/called\n[ -z '"+silent+"' ] || exit "+code+
				"\necho 'n7: unhealthy'\necho '  GPU 6 has 8 PCIe "+
				"lanes of 16; at most'; exit "+code+"\n")
		if tt.code == "127" {
			program = filepath.Join(dir, "nowhere")
		}
		show, other := strings.CutPrefix(tt.reason, "!")
		if !other {
			show = "echo 'NodeName=n7 State=IDLE Comment=x Reason=" + show + " [root@2026-01-02T03:04:05] ResumeAfterTime=None'"
		}
		file("scontrol", "#!/bin/sh\ncase $1 in show) "+show+" ;; *) echo \"$@\" >> "+dir+
			"/drained; case $* in *Reason=*) ;; *) exit 1 ;; esac ;; esac\n")
		file("logger", "#!/bin/sh\necho \"$@\" >> "+dir+"/log\n")
		text, err := CheckFile(t.Context(), Env{}, "slurm", program, Check{})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(sh, file("prolog", text))
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SLURMD_NODENAME=n7"}
		if tt.job != "" {
			cmd.Env = append(cmd.Env, "SLURM_JOB_ID="+tt.job)
		}
		out, _ := cmd.CombinedOutput()
		drained, _ := os.ReadFile(filepath.Join(dir, "drained"))
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		if cmd.ProcessState.ExitCode() != tt.exit || !strings.Contains(string(drained), tt.drained) ||
			tt.drained == "" && len(drained) > 0 ||
			!strings.Contains(string(log), tt.says) || !strings.Contains(string(out), tt.says) ||
			tt.says == "" && len(log)+len(out) > 0 {
			t.Errorf("%s: exit %d, drained %q, log %q, printed %q", name, cmd.ProcessState.ExitCode(), drained, log, out)
		}
		called, _ := os.ReadFile(filepath.Join(dir, "called"))
		if want := map[bool]string{
			true: "check -n 1 -q\n", false: "check -n 1 -q --no-load\n",
		}[tt.job != ""]; tt.code != "127" && string(called) != want {
			t.Errorf("%s: called with %q, want %q", name, called, want)
		}
	}
}

// TestCheckFileFlags: what is printed has the flags that were given, and says where the cluster's file is; what cannot
// be handed on is refused.
func TestCheckFileFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "it's.yaml")
	if err := os.WriteFile(file,
		[]byte("version: 1\ntypes:\n  a: {preset: dgx-a100}\nnodes:\n  - {hosts: 'gn[1-2]', type: a}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	q := Check{Cluster: file, Iters: 3, NoLoad: true}
	quoted := "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	for kind, want := range map[string][]string{
		"slurm": {"check -n 1 -q --iters 3 -c " + quoted + " --no-load $mode 2>&1", "same path: " + quoted, "timeout -k 5 "},
		"ansible": {
			`busbar_cluster: !unsafe "` + file + `"`, `dest: "{{ busbar_dir.path }}/cluster.yaml"`, `- !unsafe "--no-load"`,
			`- !unsafe "-c"` + "\n              - " + `"{{ busbar_dir.path }}/cluster.yaml"`,
			`busbar_from: !unsafe "/opt/my bin"`,
		},
		"kube": {
			"--json --iters 3 -c /etc/busbar/cluster.yaml --no-load", "--from-file=cluster.yaml=" + quoted,
			"mountPath: /etc/busbar", "name: busbar-cluster",
		},
	} {
		text, err := CheckFile(t.Context(), Env{}, kind, "/opt/my bin/busbar", q)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", kind, w, text)
			}
		}
		plain, err := CheckFile(t.Context(), Env{}, kind, "/opt/busbar", Check{Cluster: "dgx-a100:2"})
		if err != nil || !strings.Contains(plain, "dgx-a100:2") || strings.Contains(plain, "#F") ||
			strings.Contains(plain, "cluster.yaml") || strings.Contains(plain, "etc/busbar") {
			t.Errorf("%s of a preset: %v\n%s", kind, err, plain)
		}
		for _, text := range []string{text, plain} {
			if left := regexp.MustCompile(`@[A-Z]+@`).FindString(text); left != "" {
				t.Errorf("%s: left over: %q", kind, left)
			}
		}
	}
	for _, q := range []Check{{Cluster: "nowhere.yaml"}, {Cluster: file + ":2"}, {Hosts: "a,b"}} {
		if text, err := CheckFile(t.Context(), Env{}, "slurm", "/opt/busbar", q); err == nil {
			t.Errorf("%+v: expected an error, got\n%s", q, text)
		}
	}
}

// hostileCheck is a check whose words, and whose program's folder, are templates and commands that leave a file in dir.
func hostileCheck(t *testing.T, dir string) (program string, q Check) {
	t.Helper()
	bin := filepath.Join(dir, `{{ lookup('pipe','touch from-folder') }}`)
	file := filepath.Join(dir, "{{ lookup('pipe','touch from-file') }} $(touch sh) `touch sh` ' $(WORLD_SIZE) #F.yaml")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file,
		[]byte("version: 1\ntypes:\n  a: {preset: dgx-a100}\nnodes:\n  - {hosts: 'gn[1-2]', type: a}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, "busbar"),
		Check{Cluster: file, Perftest: `{{ lookup('pipe','touch from-flag') }} $(touch sh)`}
}

// TestCheckFileTakesWordsAsTheyAre: no word of the user is a template, a command or a line of its own in what is
// printed.
func TestCheckFileTakesWordsAsTheyAre(t *testing.T) {
	program, q := hostileCheck(t, t.TempDir())
	for _, kind := range []string{"ansible", "slurm", "kube"} {
		text, err := CheckFile(t.Context(), Env{}, kind, program, q)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			_, ours, _ := strings.Cut(line, "!unsafe ")
			if kind == "ansible" && strings.Contains(line, "lookup") && !strings.Contains(ours, "lookup") ||
				strings.Contains(line, "/tmp/") && !strings.Contains(line, filepath.Dir(q.Cluster)) {
				t.Errorf("%s: %s", kind, line)
			}
		}
		if kind == "kube" && strings.Contains(strings.ReplaceAll(text, "$$", ""), "$(WORLD_SIZE) #F.yaml --") {
			t.Errorf("Kubernetes replaces a name in a word: %s", text)
		}
		for _, bad := range []string{"a\nb", "a\rb", "a\x00b", "a\u2028b", "a\xffb"} {
			for _, x := range []struct {
				program string
				q       Check
			}{{"/opt/" + bad + "/busbar", Check{}}, {"/opt/busbar", Check{Perftest: bad}}} {
				if text, err := CheckFile(t.Context(), Env{}, kind, x.program, x.q); err == nil {
					t.Errorf("%s of %q %q: expected an error, got\n%s", kind, x.program, x.q.Perftest, text)
				}
			}
		}
	}
}

// TestCheckFilesRun runs the prolog, and the playbook where Ansible is installed, with hostile words and with a folder
// of another user where the playbook once kept its programs.
func TestCheckFilesRun(t *testing.T) {
	dir := t.TempDir()
	program, q := hostileCheck(t, dir)
	got := filepath.Join(dir, "got")
	for _, name := range []string{program, filepath.Join(filepath.Dir(program), "busbar-gpu")} {
		text := "#!/bin/sh\npwd > " + got + "\necho \"$0\" >> " + got + "\nprintf '%s\\n' \"$@\" >> " + got +
			"\necho '{\"nodes\": [{\"verdict\": \"healthy\", \"gpus\": 0}], \"notes\": []}'\n"
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for kind, tool := range map[string]string{"slurm": "sh", "ansible": "ansible-playbook"} {
		t.Run(kind, func(t *testing.T) {
			run, err := exec.LookPath(tool)
			if err != nil {
				t.Skipf("no %s here; Debian's package is ansible-core", tool)
			}
			text, err := CheckFile(t.Context(), Env{}, kind, program, q)
			if err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(dir, kind+".yml")
			if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(run, script)
			if kind == "ansible" {
				cmd = exec.Command(run, "-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=auto_silent", script)
			}
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "SLURMD_NODENAME=n7", "SLURM_JOB_ID=42", "TMPDIR="+t.TempDir(),
				"ANSIBLE_LOCAL_TEMP="+t.TempDir(), "ANSIBLE_REMOTE_TEMP="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			data, err := os.ReadFile(got)
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Split(string(data), "\n")
			if !strings.Contains(string(data), "\n"+q.Perftest+"\n") ||
				kind == "slurm" && !strings.Contains(string(data), "\n"+q.Cluster+"\n") {
				t.Errorf("it was called with %q", words)
			}
			if kind == "ansible" {
				if _, err := os.Stat(filepath.Dir(words[1])); !os.IsNotExist(err) ||
					strings.HasSuffix(words[1], "busbar-check/busbar") {
					t.Errorf("%s was run, and its folder is left: %v", words[1], err)
				}
			}
			for _, left := range []string{"from-folder", "from-file", "from-flag", "sh"} {
				if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
					t.Errorf("a word was executed: %s is there", left)
				}
			}
		})
	}
}
