package agent

import (
	"os"
	"strconv"
	"strings"

	"busbar.dev/internal/osdep"
)

// usage is what this process takes: resident memory, and processor time since it began.
func usage() (rss int64, cpu float64) {
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(data)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			rss = pages * int64(os.Getpagesize())
		}
	}
	seconds, _ := osdep.CPUSeconds()
	return rss, seconds
}
