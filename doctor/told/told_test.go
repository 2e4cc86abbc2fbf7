package told

import (
	"strings"
	"testing"
)

// always takes every line for a sentence.
func always(string) bool { return true }

// A symptom that a sentence denies is none; one that stands beside it stays.
func TestComplaint(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"We had no timeouts, no hangs, and the errors went away.", ""},
		{"All tests passed, no timeout or hang", ""},
		{"The heartbeat timeout is 480 s", ""},
		{"The job hangs with no error.", "hang"},
		{"The job crashes or hangs.", "hang crash"},
		{"There are no errors, hangs after the first step.", "hang"},
		{"It makes no progress.", "hang"},
		{"The run gives 10 errors.", "crash"},
		{"no kernel panic or GPU fault before, the job just hangs", "hang"},
	} {
		var got []string
		for _, s := range []string{Slow, Hang, Crash} {
			if Complaint(Read(c.text, always), s) {
				got = append(got, s)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// What a clause says of the change that it names.
func TestVerdicts(t *testing.T) {
	for text, want := range map[string]Verdict{
		"it works with NCCL_P2P_DISABLE=1":                Works,
		"NCCL_IB_GID_INDEX=3 fixed it":                    Works,
		"without P2P it runs":                             Works,
		"disabling ACS helps":                             Works,
		"NCCL_P2P_DISABLE=1 does not help":                Fails,
		"still hangs with NCCL_P2P_DISABLE=1":             Fails,
		"hangs also with --disable-custom-all-reduce":     Fails,
		"changing ports is not helping":                   Fails,
		"it hangs with NCCL_NET_GDR_LEVEL=LOC":            Fails,
		"reinstalling the driver made no difference":      Fails,
		"it does not work with NCCL_IB_GID_INDEX=3":       Fails,
		"the firewall is already off":                     Settled,
		"ulimit -l is unlimited":                          Settled,
		"no illegal memory access":                        Settled,
		"we never saw Xid 79":                             Settled,
		"the ECC errors are gone":                         Settled,
		"port 29500 is already in use":                    Seen,
		"it works with one GPU":                           Seen,
		"the second node no longer answers":               Seen,
		"No space left on device":                         Seen,
		"all ranks share the same network with training":  Seen,
		"the job hangs in the first step":                 Seen,
		"nvidia_peermem is not loaded":                    Seen,
		"two ranks never return":                          Seen,
		"training slowed down with the new kernel":        Seen,
		"NET/IB : No device found":                        Seen,
		"removing NCCL_NET_GDR_LEVEL makes it work again": Works,
	} {
		list := Read(text, always)
		if len(list) != 1 || list[0].Verdict != want {
			t.Errorf("%q: %+v, want verdict %d", text, list, want)
		}
	}
}

// A clause that only says how the change before it went belongs to that change.
func TestRefersBack(t *testing.T) {
	for text, want := range map[string]int{
		"NCCL_P2P_DISABLE=1 is set, it works now":                 1,
		"port 29500 already in use, changing ports does not help": 2,
	} {
		if list := Read(text, always); len(list) != want {
			t.Errorf("%q: %+v, want %d clauses", text, list, want)
		}
	}
}

// What is denied in front of a thing or behind it is not there.
func TestDenies(t *testing.T) {
	for text, want := range map[string]bool{
		"no kernel panic or XXX before": true, "we never saw XXX": true, "XXX went away": true,
		"there was no sign of XXX": true,
		"the GPU has XXX":          false, "no device found because XXX": false, "the job fails: XXX": false,
	} {
		i := strings.Index(text, "XXX")
		if Denies(text, i, i+3) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("hangs, but NCCL_P2P_DISABLE=1 helps; (a, b) no Xid.")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range Read(text, always) {
			if c.Norm == " " || !strings.HasPrefix(c.Norm, " ") || !strings.HasSuffix(c.Norm, " ") {
				t.Fatalf("%+v", c)
			}
		}
		Denies(text, len(text)/2, len(text))
	})
}
