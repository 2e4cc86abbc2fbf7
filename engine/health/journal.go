package health

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"busbar.dev/engine/ranks"
)

// Kernel reads the kernel's log where it can be read: from the kernel itself, which mostly refuses ordinary users, from
// systemd's journal, or from the file that syslog writes.
type Kernel struct {
	// Own is the log that the kernel keeps, and how long the machine is up.
	Own func(ctx context.Context) (log []byte, up time.Duration, err error)
	// Journal runs a program, journalctl; nil: none can be run.
	Journal func(ctx context.Context, args []string, w io.Writer) error
	// Root is the machine's /; nil: its files are not read.
	Root fs.FS
	// Now is the time, for lines of files.
	Now func() time.Time
}

// journalArgs ask for the newest messages of the kernel since the machine started.
var journalArgs = []string{"-k", "-n", "20000", "-o", "json", "--no-pager", "-q", "--output-fields=MESSAGE"}

// driverModule is there where NVIDIA's driver is loaded.
const driverModule = "sys/module/nvidia"

// kernFiles are where syslog keeps the kernel's messages: of Debian, and of Red Hat.
var kernFiles = []string{"var/log/kern.log", "var/log/messages"}

// Read is the log with lines as dmesg writes them, and how long the machine is up. The error names every source that
// was tried.
func (k *Kernel) Read(ctx context.Context) ([]byte, time.Duration, error) {
	log, up, err := k.Own(ctx)
	if err == nil {
		return log, up, nil
	}
	if k.Root != nil {
		if _, none := fs.Stat(k.Root, driverModule); none != nil { // nobody writes an Xid
			return nil, up, err
		}
	}
	tried := []string{err.Error()}
	if k.Journal != nil {
		out := &ranks.Printed{Most: mostPrinted}
		err := k.Journal(ctx, journalArgs, out)
		if log = journalLines(out.Bytes()); len(log) > 0 {
			return log, up, nil
		}
		if err == nil {
			err = errors.New("it shows no message of the kernel; its reader must be in the group systemd-journal")
		}
		tried = append(tried, fmt.Sprintf("journalctl: %v", err))
	}
	if k.Root != nil {
		for _, name := range kernFiles {
			data, err := tail(k.Root, name)
			if err == nil {
				return syslogLines(data, k.Now()), up, nil
			}
			tried = append(tried, err.Error())
		}
	}
	return nil, up, errors.New(strings.Join(tried, "; "))
}

// tail is the end of a file, from a whole line on.
func tail(root fs.FS, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const most = 4 << 20
	if s, ok := f.(io.Seeker); ok && info.Size() > most {
		if _, err := s.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if _, rest, whole := bytes.Cut(data, []byte("\n")); whole && info.Size() > most {
		data = rest
	}
	return data, err
}

// journalLines makes lines of dmesg of what journalctl -o json prints. A message that is no text comes as an array of
// its bytes.
func journalLines(data []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		if len(line) > maxJournalLine {
			continue
		}
		var r struct {
			Message json.RawMessage `json:"MESSAGE"`
			Micros  string          `json:"__MONOTONIC_TIMESTAMP"`
		}
		var text string
		var raw []byte
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		if json.Unmarshal(r.Message, &text) != nil {
			var numbers []int
			if json.Unmarshal(r.Message, &numbers) != nil {
				continue
			}
			for _, n := range numbers {
				raw = append(raw, byte(n))
			}
			text = strings.ToValidUTF8(string(raw), "?")
		}
		micros, err := strconv.ParseInt(r.Micros, 10, 64)
		if err != nil || micros < 0 {
			continue
		}
		text, _, _ = strings.Cut(text, "\n")
		fmt.Fprintf(&out, "[%5d.%06d] %s\n", micros/1e6, micros%1e6, text)
	}
	return out.Bytes()
}

// maxJournalLine bounds what is read of a line of the journal.
const maxJournalLine = 64 << 10

// syslogLines are those of the last day: a file has several starts of the machine, and what the kernel says of the time
// counts from each.
func syslogLines(data []byte, now time.Time) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		at, ok := syslogTime(line, now)
		if age := now.Sub(at); !ok || age > recent || age < -time.Hour {
			continue
		}
		if i := bytes.Index(line, []byte("kernel:")); i >= 0 {
			out.Write(bytes.TrimLeft(line[i+len("kernel:"):], " "))
		}
	}
	return out.Bytes()
}

// syslogTime is the time at the beginning of a line: Nov 17 08:18:20, of the year that it fits, or
// 2026-11-17T08:18:20.123456+00:00.
func syslogTime(line []byte, now time.Time) (time.Time, bool) {
	word, _, _ := strings.Cut(string(line[:min(len(line), 64)]), " ")
	if at, err := time.Parse(time.RFC3339Nano, word); err == nil {
		return at, true
	}
	const short = "Jan _2 15:04:05"
	if len(line) < len(short) {
		return time.Time{}, false
	}
	at, err := time.ParseInLocation(short, string(line[:len(short)]), now.Location())
	if err != nil {
		return time.Time{}, false
	}
	at = at.AddDate(now.Year(), 0, 0)
	if at.Sub(now) > 24*time.Hour { // of last December
		at = at.AddDate(-1, 0, 0)
	}
	return at, true
}
