package evidence

import (
	"slices"
	"strconv"
	"strings"
)

// counter keeps counts above zero; the values differ between hosts and times, so
// only their size is kept.
func counter(g []string) ([]string, bool) {
	n, err := strconv.ParseUint(g[1], 10, 63)
	if err != nil || n == 0 {
		return nil, false
	}
	size := "1"
	switch {
	case n >= 1_000_000:
		size = "1000000"
	case n >= 1000:
		size = "1000"
	case n >= 10:
		size = "10"
	}
	return []string{strings.ToLower(g[0]), size}, true
}

// mtus lists the RDMA sizes that a line about active_mtu names.
func mtus(g []string) ([]string, bool) {
	var list []string
	for _, w := range strings.FieldsFunc(g[0], func(r rune) bool { return r < '0' || r > '9' }) {
		switch w {
		case "256", "512", "1024", "2048", "4096":
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return []string{strings.Join(list, ",")}, len(list) > 0
}

func gid(g []string) ([]string, bool) {
	class := "global"
	switch {
	case strings.HasPrefix(g[2], "fe80:"):
		class = "link-local"
	case strings.HasPrefix(g[2], "0000:0000:0000:0000:0000:ffff:"):
		class = "ipv4"
	}
	return []string{g[0], g[1], class, strings.ToLower(g[3])}, true
}

// completion writes the vendor's code as a decimal number: NCCL prints 129, the
// same in hexadecimal is 0x81.
func completion(g []string) ([]string, bool) {
	vendor := g[1]
	if hex, ok := strings.CutPrefix(strings.ToLower(vendor), "0x"); ok {
		if n, err := strconv.ParseUint(hex, 16, 32); err == nil {
			vendor = strconv.FormatUint(n, 10)
		}
	}
	if n := atoi(g[0]); n < 1 || n > 22 { // ibv_wc_status ends at 22
		return nil, false
	}
	return []string{g[0], vendor}, true
}

// verdicts are the errors of work completions in words, as libibverbs, UCX and
// other users of it print them.
var verdicts = []struct{ words, name string }{
	{"local length error", "LOC_LEN_ERR"},
	{"local protection error", "LOC_PROT_ERR"},
	{"local protection on ", "LOC_PROT_ERR"}, // UCX's short form
	{"local access violation", "LOC_ACCESS_ERR"},
	{"remote invalid request", "REM_INV_REQ_ERR"},
	{"remote access error", "REM_ACCESS_ERR"},
	{"remote operation error", "REM_OP_ERR"},
	{"retry counter exceeded", "RETRY_EXC_ERR"},
	{"retry count exceeded", "RETRY_EXC_ERR"},
	{"rnr retry", "RNR_RETRY_EXC_ERR"},
}

func verdict(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	for _, v := range verdicts {
		if strings.Contains(low, v.words) {
			if v.name == "RETRY_EXC_ERR" && strings.Contains(low, "rnr retry") {
				continue
			}
			return []string{v.name}, true
		}
	}
	return nil, false
}

// verbsCalls are the calls whose failure says something.
var verbsCalls = []string{
	"ibv_modify_qp", "ibv_create_qp", "ibv_create_cq", "ibv_reg_dmabuf_mr", "mlx5dv_reg_dmabuf_mr", "ibv_reg_mr_iova2",
	"ibv_reg_mr", "ibv_alloc_pd", "ibv_open_device",
	"ibv_get_device_list", "ibv_query_gid", "ibv_query_port", "ibv_poll_cq", "ibv_create_srq", "ibv_post_send",
	"pin_user_pages", "modify_qp", "create_qp", "create_cq", "reg_mr",
}

// reasons are errors of the system, as words and as names.
var reasons = []struct{ words, name string }{
	{"cannot allocate memory", "memory"},
	{"enomem", "memory"},
	{"invalid argument", "invalid"},
	{"einval", "invalid"},
	{"timed out", "timeout"},
	{"times out", "timeout"},
	{"etimedout", "timeout"},
	{"no data available", "timeout"},
	{"operation not supported", "unsupported"},
	{"protocol not supported", "unsupported"},
	{"eopnotsupp", "unsupported"},
	{"bad address", "address"},
	{"permission denied", "permission"},
	{"operation not permitted", "permission"},
	{"no space left", "space"},
	{"no such device", "device"},
	{"network is unreachable", "unreachable"},
	{"no route to host", "unreachable"},
	{"function not implemented", "unsupported"},
}

// verbs names the call that failed and why.
func verbs(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	why := ""
	for _, r := range reasons {
		if strings.Contains(low, r.words) {
			why = r.name
			break
		}
	}
	if why == "" && !strings.Contains(low, "failed") {
		return nil, false
	}
	for _, c := range verbsCalls {
		if strings.Contains(low, c) {
			if !strings.HasPrefix(c, "ibv_") && !strings.HasPrefix(c, "mlx5dv_") {
				c = "ibv_" + c
			}
			return []string{c, why}, c != "ibv_open_device"
		}
	}
	for _, w := range []string{"ib failure", "ib_", "verbs", "rdma", "couldn't allocate mr", "net/ib"} {
		if why == "memory" && strings.Contains(low, w) {
			return []string{"ibv", why}, true
		}
	}
	return nil, false
}
