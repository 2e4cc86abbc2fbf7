package launch

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/nccl"
)

// TestPlanSetsNoFiles reads settings that would have NCCL load, read or write something of a plan's choice.
func TestPlanSetsNoFiles(t *testing.T) {
	for _, name := range []string{
		"LD_PRELOAD", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH", "NCCL_TUNER_PLUGIN",
		"NCCL_NET_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN", "NCCL_GIN_PLUGIN",
		"NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_DEBUG_FILE",
		"NCCL_CONF_FILE", "NCCL_COMM_ID", "NCCL_TUNER_CONFIG_FILE", "NCCL_RAS_ADDR",
		"NCCL_HOSTID", "NCCL_NET", "NCCL_PROFILE_DUMP_FILE", "NCCL_TUNER_PLUGIN_PATH", "NCCL_CUDA_PATH", "NCCL_DEBUG",
		"NCCL_MSCCL_XML_FILES", "NCCL_CROSS_NIC\nLD_PRELOAD",
	} {
		if checkSettings([]Setting{{Name: name, Value: "1"}}) == nil {
			t.Errorf("a plan may set %q", name)
		}
	}
	// What nobody has thought of is refused as well.
	for _, name := range []string{"NCCL_", "NCCL_NEW_HOOK", "NCCL_SHM_DISABLE", "NCCL_IB_TC", "nccl_algo", "NCCL_ALGO "} {
		if checkSettings([]Setting{{Name: name, Value: "1"}}) == nil {
			t.Errorf("a plan may set %q", name)
		}
	}
	for _, name := range settable {
		if err := checkSettings([]Setting{{Name: name, Value: "1"}}); err != nil {
			t.Error(err)
		}
	}
	for _, group := range candidates(nccl.Version{Major: 2, Minor: 27}) {
		for _, c := range group {
			if err := checkSettings([]Setting{{Name: c.name, Value: c.value}}); err != nil {
				t.Errorf("busbar plan writes what busbar exec refuses: %v", err)
			}
		}
	}
}

// TestPythonCoding: a file of Python says its own coding, so that names in the comments of its first lines cannot.
func TestPythonCoding(t *testing.T) {
	coding := regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`) // of PEP 263
	files, err := fs.Glob(texts, "texts/*.py.tmpl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, _ := texts.ReadFile(name)
		if m := coding.FindSubmatch(text); m == nil || string(m[1]) != "utf-8" {
			t.Errorf("%s begins with %.40q; expected its coding", name, text)
		}
	}
	w := &writer{Plan: &Plan{Made: "coding: utf-7 +AAo-import os", Job: Job{Model: "coding: utf-7"}}, Hosts: []Host{{}}}
	text, reason := fill("mesh.py", w)
	if m := coding.FindStringSubmatch(text); reason != "" || m == nil || m[1] != "utf-8" {
		t.Errorf("%s\n%s", text, reason)
	}
}

// TestPodsQuoteNames: a host's name stays one text of YAML.
func TestPodsQuoteNames(t *testing.T) {
	hosts := []Host{{Name: "n1\"\n  - x: \"y"}}
	text, reason := fill("pods.yaml", pods{writer: &writer{Plan: &Plan{}, Hosts: hosts}, Below: hosts})
	if reason != "" || !strings.Contains(text, `- "n1\"\n  - x: \"y"`) {
		t.Errorf("%s\n%s", text, reason)
	}
}

// TestNothingHidden: no file has characters that turn a line around or do not show, whoever gave them.
func TestNothingHidden(t *testing.T) {
	w := &writer{Plan: &Plan{}}
	w.put("job.sh", "echo \u202eab\u200b\x1b[2Jc\td\n", "")
	if got := w.files[0].Text; got != "echo ab[2Jc\td\n" {
		t.Errorf("written is %q", got)
	}
}
