package doctor

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/predict"
)

// misspeltRules are about settings that nobody reads.
func misspeltRules() []Rule {
	return []Rule{
		{"setting-misspelt", "a setting whose name is a letter or two from one that NCCL has", "a setting has no effect: NCCL knows no such name", envGuide, nil, settingMisspelt},
	}
}

// elsewhere are names that look like NCCL's and are read by others: frameworks, its
// tests and plugins, build systems.
var elsewhere = []string{
	"NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_TIMEOUT", "NCCL_VERSION", "NCCL_HOME", "NCCL_LIB_DIR", "NCCL_ROOT", "NCCL_DIR", "NCCL_PATH", "NCCL_TEST", "NCCL_TESTS",
	"NCCL_TESTS_DEVICE", "NCCL_IBEXT_DISABLE", "NCCL_PLUGIN_P2P", "NCCL_UCX_TLS", "NCCL_UCX_RNDV_THRESH", "NCCL_SHARP_DISABLE", "NCCL_TUNER_CONFIG_PATH", "NCCL_NVLS", "NCCL_IB",
}

func settingMisspelt(c *Case) *finding.Finding {
	for _, name := range c.EnvNames() {
		if !strings.HasPrefix(name, "NCCL_") || len(name) < 9 || slices.Contains(elsewhere, name) {
			continue
		}
		meant := predict.Misspelt(name)
		if meant == "" || c.Env(meant) != nil {
			continue
		}
		f := &finding.Finding{
			Severity: finding.Warn, Confidence: 0.95, Title: fmt.Sprintf("%s is no setting of NCCL; %s is", name, meant),
			Cause: "NCCL reads the names that it knows and says nothing about others, so what was meant to be set is not.",
			Fix:   fmt.Sprintf("%s=%s", meant, c.Env(name).Value), Evidence: c.quotes(name),
		}
		if !c.broken() && !c.slow() && !c.is("unstable", "wrong") && !c.Has(evidence.VerbsFailure, evidence.Completion) {
			f.Severity, f.Confidence = finding.Note, 0.6 // nothing hangs on it, or nobody says so
		}
		return f
	}
	return nil
}
