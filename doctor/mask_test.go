package doctor

import (
	"strings"
	"testing"

	"busbar/evidence"
)

func TestSecrets(t *testing.T) {
	for _, c := range []struct{ in, gone string }{
		{"WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"},
		{"export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "hf_abc"},
		{"Authorization: Bearer eyJhbGciOi.J9.abc", "eyJhbGciOi"},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalr"},
		{"AKIAIOSFODNN7EXAMPLE in the log", "AKIAIOS"},
		{"git clone https://user:s3cret@host/x.git", "s3cret"},
		{"\"password\": \"hunter22\"", "hunter22"},
		{"token: ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_"},
		{"pull with nvapi-0123456789abcdefghijABCD", "nvapi-0123"},
	} {
		if got := Secrets(c.in); strings.Contains(got, c.gone) || !strings.Contains(got, hidden) {
			t.Errorf("%q became %q", c.in, got)
		}
	}
	for _, keep := range []string{
		"n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM", "NCCL_IB_HCA=mlx5_0", "commId 0xde843772bfa53d08 - Init COMPLETE", "tokens per second: 1234567",
	} {
		if got := Secrets(keep); got != keep {
			t.Errorf("%q became %q", keep, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"Connect to 10.148.3.247<56821> failed":   "Connect to ***<56821> failed",
		"eth0:fe80::215:5dff:fe33:ff6d%eth1<0>":   "eth0:***%eth1<0>",
		"mail bob@example.org at 12:34:56":        "mail *** at 12:34:56",
		"link/ether 02:42:a9:9e:3d:33":            "link/ether ***",
		"GPU 0000:1b:00.0 at 2026-01-01 00:00:01": "GPU 0000:1b:00.0 at 2026-01-01 00:00:01",
	} {
		if got := Addresses(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// A secret in a quoted line reaches no form of the report.
func TestReportsHideSecrets(t *testing.T) {
	r := &Report{Findings: []Finding{{ID: "x", Severity: Warn, Title: "t", Evidence: []evidence.Quote{{File: "f", Line: 1, Text: "NCCL_X=1 HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz 10.1.2.3"}}}}}
	r.Mask(true)
	var b strings.Builder
	for _, err := range []error{Text{}.Write(&b, r), JSON(&b, r), Markdown(&b, r), SARIF(&b, r), JUnit(&b, r)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := b.String(); strings.Contains(s, "hf_abc") || strings.Contains(s, "10.1.2.3") || strings.Count(s, "NCCL_X=1") != 5 {
		t.Errorf("%s", s)
	}
}
