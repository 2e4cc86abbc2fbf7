package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const ownJournal = `{"__CURSOR":"s=1","__MONOTONIC_TIMESTAMP":"93591797","MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."}
{"__MONOTONIC_TIMESTAMP":"7200000000","MESSAGE":[78,86,82,77,58,32,88,105,100,32,40,80,67,73,58,48,48,48,48,58,53,101,58,48,48,41,58,32,52,56,44,32,255]}
{"MESSAGE":"without a time"}
{"__MONOTONIC_TIMESTAMP":"-5","MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79"}
{"__MONOTONIC_TIMESTAMP":"7","MESSAGE":{"no":"text"}}
no JSON at all
`

// TestKernelSources: what one source refuses another may have, and a refusal by all names them.
func TestKernelSources(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := func(context.Context) ([]byte, time.Duration, error) {
		return nil, 3 * time.Hour, errors.New("open /dev/kmsg: operation not permitted")
	}
	journal := func(text string, err error) func(context.Context, []string, io.Writer) error {
		return func(_ context.Context, args []string, w io.Writer) error {
			if fmt.Sprint(args[:2]) != "[-k -n]" {
				t.Errorf("%v", args)
			}
			_, _ = io.WriteString(w, text)
			return err
		}
	}
	file := "Dec 31 08:00:00 gpu07 kernel: [  100.0] NVRM: Xid (PCI:0000:3b:00): 79, old\n" +
		"Jan  1 11:00:00 gpu07 kernel: [  200.5] NVRM: Xid (PCI:0000:3b:00): 48, new\n" +
		"2026-01-01T11:30:00.123456+00:00 gpu07 kernel: NVRM: Xid (PCI:0000:3b:00): 63, without the kernel's time\n" +
		"Jan  1 11:00:00 gpu07 sshd: [  1.0] NVRM: Xid (PCI:0000:3b:00): 95, not the kernel\n" +
		"no date kernel: [ 1.0] NVRM: Xid (PCI:0000:3b:00): 95\n"
	for name, tt := range map[string]struct {
		k    Kernel
		want string // codes
		err  string
	}{
		"journal": {k: Kernel{Journal: journal(ownJournal, nil)}, want: "79 48"},
		"empty journal": {k: Kernel{
			Journal: journal("", nil), Root: fstest.MapFS{driverModule: {}, "var/log/kern.log": {Data: []byte(file)}},
		}, want: "48 63"},
		"no journal": {k: Kernel{
			Journal: journal("", errors.New("not found")),
			Root:    fstest.MapFS{driverModule: {}, "var/log/messages": {Data: []byte(file)}},
		}, want: "48 63"},
		"no driver": {
			k: Kernel{Journal: journal(ownJournal, nil), Root: fstest.MapFS{}}, err: "/dev/kmsg: operation not permitted",
		},
		"nothing": {
			k: Kernel{Journal: journal("", nil), Root: fstest.MapFS{driverModule: {}}},
			err: "/dev/kmsg: operation not permitted; journalctl: it shows no message of the kernel; its reader must be in " +
				"the group systemd-journal; open var/log/kern.log",
		},
	} {
		tt.k.Own, tt.k.Now = refused, func() time.Time { return now }
		log, up, err := tt.k.Read(t.Context())
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var codes []string
		for _, f := range xids("gpu07", log, up, nil) {
			codes = append(codes, strings.TrimPrefix(f.ID, "gpu-xid-"))
		}
		if got := strings.Join(codes, " "); got != tt.want || err != nil || up != 3*time.Hour {
			t.Errorf("%s: %s, %v\n%s", name, got, err, log)
		}
	}
}

// TestKernelTail: of a long file the end is read, from a whole line on.
func TestKernelTail(t *testing.T) {
	line := "Jan  1 11:00:00 gpu07 kernel: [  200.5] filler\n"
	data, err := tail(fstest.MapFS{"log": {Data: []byte(strings.Repeat(line, 5<<20/len(line)) + "the end\n")}}, "log")
	if err != nil || len(data) > 4<<20 || !strings.HasPrefix(string(data), "Jan  1") ||
		!strings.HasSuffix(string(data), "the end\n") {
		t.Errorf("%d bytes, %v, %.60q", len(data), err, data)
	}
}

func FuzzKernelLines(f *testing.F) {
	f.Add([]byte(ownJournal))
	f.Add([]byte("Jan  1 11:00:00 gpu07 kernel: [  200.5] NVRM: Xid (PCI:0000:3b:00): 48, new\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		for _, log := range [][]byte{journalLines(data), syslogLines(data, now)} {
			if len(log) > 3*len(data)+64 {
				t.Errorf("%d bytes of %d", len(log), len(data))
			}
			for _, x := range xids("h", log, time.Hour, nil) {
				if len(x.Text) > 4096 {
					t.Error("a long text")
				}
			}
		}
	})
}
