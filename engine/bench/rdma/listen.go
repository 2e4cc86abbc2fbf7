package rdma

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// listens tells whether a program of this machine listens at a TCP port. It asks the kernel: a connection would be
// taken for the client's, and what a program prints reaches a pipe only when it ends.
func listens(port int) bool {
	end, state := fmt.Sprintf(":%04X", port), "0A"
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		scan := bufio.NewScanner(f)
		for scan.Scan() {
			if w := strings.Fields(scan.Text()); len(w) > 3 && w[3] == state && strings.HasSuffix(w[1], end) {
				f.Close()
				return true
			}
		}
		f.Close()
	}
	return false
}
