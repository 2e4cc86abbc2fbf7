package doctor

import (
	"io"
	"strings"
	"testing"

	"busbar.dev/finding"
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
		{"https://me:p@s3cr3t@host/x", "s3cr3t"},
		{"pip install git+https://s3cr3ttoken@github.com/x", "s3cr3t"},
		{"train.py --hf-token s3cr3t --password 's3 cr3t' --api-key=s3cr3t", "cr3t"},
		{`{"name": "HF_TOKEN", "value": "s3cr3t"}`, "s3cr3t"},
		{`{\"password\": \"two s3cr3t\"}`, "s3cr3t"},
		{`password="two words s3cr3t" rest`, "s3cr3t"},
		{"DB_PASS=s3cr3t", "s3cr3t"},
		{"AZURE_STORAGE_KEY=s3cr3t==", "s3cr3t"},
		{"MY_SECRET_VALUE=s3cr3t", "s3cr3t"},
		{"AccountName=x;AccountKey=s3cr3t==;EndpointSuffix=y", "s3cr3t"},
		{"SLURM_JWT=s3cr3t", "s3cr3t"},
		{"GET /blob?sv=1&sig=s3cr3t%3D&se=2", "s3cr3t"},
		{"GET /o?X-Amz-Signature=s3cr3t", "s3cr3t"},
		{"Set-Cookie: session=s3cr3t; path=/", "s3cr3t"},
		{"sshpass -p s3cr3t ssh host", "s3cr3t"},
		{"mysql -u root -ps3cr3t db", "s3cr3t"},
		{"curl -s -u me:s3cr3t https://host", "s3cr3t"},
		{"dckr_pat_s3cr3tabcdefghijkl", "s3cr3t"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\\nb3s3cr3t", "s3cr3t"},
		{"pull with nvapi-0123456789abcdefghijABCD", "nvapi-0123"},
	} {
		if got := Secrets(c.in); strings.Contains(got, c.gone) || !strings.Contains(got, hidden) {
			t.Errorf("%q became %q", c.in, got)
		}
	}
	for _, keep := range []string{
		"n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM", "NCCL_IB_HCA=mlx5_0",
		"commId 0xde843772bfa53d08 - Init COMPLETE", "tokens per second: 1234567",
		"forward_pass: 12.5 ms", "--max-tokens 4096 tokens_per_gpu=8192", "http://10.0.0.1:8080/x",
		"PWD=/home/me OLDPWD=/tmp",
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
	r := &Report{Findings: []finding.Finding{{
		ID: "x", Severity: finding.Warn, Title: "t",
		Evidence: []finding.Quote{{File: "f", Line: 1, Text: "NCCL_X=1 HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz 10.1.2.3"}},
	}}}
	r.Mask(true)
	var b strings.Builder
	for _, err := range []error{
		Text{}.Write(&b, r), indented(&b, r), Markdown(&b, r),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := b.String(); strings.Contains(s, "hf_abc") || strings.Contains(s, "10.1.2.3") ||
		strings.Count(s, "NCCL_X=1") != 3 {
		t.Errorf("%s", s)
	}
}

// What a log's author chose to write neither commands a terminal nor becomes
// markup, in any form of the report; names of files are no exception.
func TestReportsAreOnlyRead(t *testing.T) {
	evil := "\x1b]0;x\a\x1b[2J\u202e\n# <script>[x](http://e.org) hf_abcdefghijklmnopqrstuvwxyz"
	q := finding.Quote{File: "log" + evil, Line: 1, Text: "line" + evil}
	r := &Report{
		Findings: []finding.Finding{{
			ID: "x", Severity: finding.Warn, Title: "t" + evil, Cause: "c" + evil, Where: "w" + evil,
			Fix: "see `ip -br addr` and a_b", Evidence: []finding.Quote{q},
		}},
		Sources: []string{q.File}, Samples: []finding.Quote{q},
	}
	r.Mask(false)
	for name, write := range map[string]func(io.Writer, *Report) error{
		"text": Text{All: true}.Write, "json": jsonOf, "markdown": Markdown,
	} {
		var b strings.Builder
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		s := b.String()
		if strings.ContainsAny(s, "\x1b\a\u202e") || strings.Contains(s, "hf_abc") {
			t.Errorf("%s: %q", name, s)
		}
		if name != "markdown" {
			continue
		}
		for _, l := range strings.Split(s, "\n") {
			if !strings.HasPrefix(l, "    ") &&
				(strings.Contains(l, "<script") || strings.Contains(l, " [x]") || strings.HasPrefix(l, "# ")) {
				t.Errorf("markup: %q", l)
			}
		}
		if !strings.Contains(s, "`ip -br addr` and a\\_b") {
			t.Errorf("code is lost: %s", s)
		}
	}
}

func jsonOf(w io.Writer, r *Report) error { return indented(w, r) }
