package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is read of the kernel's log.
const (
	maxRecords = 1 << 16
	maxRecord  = 8 << 10
	maxKernel  = 16 << 20
)

// KernelLog reads the messages that the kernel keeps, from /dev/kmsg, without waiting for more. Ordinary users are
// mostly refused.
func KernelLog(context.Context) ([]byte, time.Duration, error) {
	fd, err := syscall.Open("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, upTime(), &os.PathError{Op: "open", Path: "/dev/kmsg", Err: err}
	}
	defer syscall.Close(fd)
	var out bytes.Buffer
	buf := make([]byte, maxRecord)
	for range maxRecords {
		n, err := syscall.Read(fd, buf)
		switch {
		case errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EINTR): // records were overwritten meanwhile
			continue
		case errors.Is(err, syscall.EAGAIN) || n == 0 && err == nil:
			return out.Bytes(), upTime(), nil
		case err != nil:
			return nil, upTime(), &os.PathError{Op: "read", Path: "/dev/kmsg", Err: err}
		}
		if line, ok := kernelLine(buf[:n]); ok && out.Len() < maxKernel {
			out.WriteString(line)
		}
	}
	return out.Bytes(), upTime(), nil
}

// kernelLine makes a line of dmesg of a record: 6,1234,93591797,-;NVRM: Xid …
func kernelLine(record []byte) (string, bool) {
	head, text, ok := strings.Cut(string(record), ";")
	parts := strings.Split(head, ",")
	if !ok || len(parts) < 3 {
		return "", false
	}
	micros, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return fmt.Sprintf("[%5d.%06d] %s\n", micros/1e6, micros%1e6, text), true
}

func upTime() time.Duration {
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	var seconds float64
	_, _ = fmt.Sscan(string(data), &seconds) // no figure is 0
	return time.Duration(seconds * float64(time.Second))
}
