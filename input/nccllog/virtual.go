package nccllog

import "strings"

// virtualNames begin the names of interfaces that exist on one host only, or
// that no training traffic should take.
var virtualNames = []struct{ prefix, what string }{
	{"docker", "Docker's bridge"},
	{"br-", "a Docker bridge"},
	{"virbr", "libvirt's bridge"},
	{"veth", "one end of a container's cable"},
	{"lo", "the loopback"},
	{"ip6tnl", "a tunnel"},
	{"tunl", "a tunnel"},
	{"sit", "a tunnel"},
	{"gre", "a tunnel"},
	{"tun", "a VPN's tunnel"},
	{"tap", "a virtual machine's cable"},
	{"wg", "WireGuard"},
	{"tailscale", "Tailscale"},
	{"zt", "ZeroTier"},
	{"cni", "a bridge of Kubernetes"},
	{"cali", "Calico's cable"},
	{"flannel", "Flannel's tunnel"},
	{"kube", "a bridge of Kubernetes"},
	{"lxc", "a container's cable"},
	{"lxd", "LXD's bridge"},
	{"vmnet", "a virtual machine's network"},
	{"vboxnet", "VirtualBox's network"},
	{"usb", "a USB network"},
	{"enx", "a USB network"},
	{"wlan", "wireless"},
	{"wlp", "wireless"},
	{"dummy", "a dummy interface"},
	{"podman", "Podman's bridge"},
	{"nodelocaldns", "a DNS cache"},
	{"idrac", "the management controller"},
	{"ipmi", "the management controller"},
	{"bmc", "the management controller"},
}

// Virtual says what an interface is when its name tells that it leads nowhere; "" of all others.
func Virtual(name string) string {
	for _, v := range virtualNames {
		rest, ok := strings.CutPrefix(name, v.prefix)
		if ok && (v.prefix != "lo" || rest == "") && (v.prefix != "usb" && v.prefix != "tun" && v.prefix != "sit" &&
			v.prefix != "tap" && v.prefix != "wg" || rest == "" || rest[0] >= '0' && rest[0] <= '9') {
			return v.what
		}
	}
	return ""
}

// isCard tells interfaces of cards from those the kernel makes up.
func isCard(name string) bool {
	what := Virtual(name)
	return what == "" || what == "wireless" || what == "a USB network"
}
