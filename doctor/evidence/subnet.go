package evidence

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/finding"
)

// Subnet is a network that an interface of a host lies in: network, interface,
// number of the host in its source.
const Subnet Kind = "subnet"

// subnetWords are the words by which lines with addresses are found.
const subnetWords = "mtu |inet |inet6 |scope link|0.0.0.0"

// subnetPatterns are how ip address, ifconfig and routing tables write addresses.
type subnetPatterns struct {
	device, ifconfig, inet, masked, route, kernel *regexp.Regexp
}

func newSubnetPatterns() *subnetPatterns {
	return &subnetPatterns{
		device:   regexp.MustCompile(`^\s*(\d{1,6}): ([\w.-]+)(?:@\S+)?: <`),
		ifconfig: regexp.MustCompile(`^([\w.-]+): flags=`),
		inet:     regexp.MustCompile(`^\s+inet6? ([0-9a-fA-F.:]+)/(\d{1,3})\b.*\bscope global`),
		masked:   regexp.MustCompile(`^\s+inet ([\d.]+)\s+netmask ([\d.]+)`),
		route:    regexp.MustCompile(`^([\d.]+)/(\d{1,2}) dev (\S+) .*\bscope link`),
		kernel:   regexp.MustCompile(`^([\d.]+)\s+0\.0\.0\.0\s+(255[\d.]+)\s+U\S*(?:\s+\d+){3}\s+([\w.-]+)\s*$`),
	}
}

// subnetReader follows which interface of which host the lines belong to.
type subnetReader struct {
	*subnetPatterns
	device string
	index  int
	names  map[string]bool
	host   int
}

// begin starts a source.
func (r *subnetReader) begin() { r.device, r.index, r.names = "", 0, map[string]bool{} }

// read files the network of an address. Numbers that begin again, or a name that
// comes again, belong to another host.
func (r *subnetReader) read(s *Set, text string, q finding.Quote) bool {
	if m := r.subnetPatterns.device.FindStringSubmatch(text); m != nil {
		n := atoi(m[1])
		if n <= r.index {
			r.next()
		}
		r.device, r.index = m[2], n
		return false
	}
	if m := r.ifconfig.FindStringSubmatch(text); m != nil {
		if r.names[m[1]] || m[1] == "lo" && len(r.names) == 0 {
			r.next()
		}
		if len(r.names) < 1000 {
			r.names[m[1]] = true
		}
		r.device = m[1]
		return false
	}
	if m := r.inet.FindStringSubmatch(text); m != nil {
		return r.addSubnet(s, q, m[1], atoi(m[2]), r.device)
	}
	if m := r.masked.FindStringSubmatch(text); m != nil {
		return r.addSubnet(s, q, m[1], ones(m[2]), r.device)
	}
	if m := r.route.FindStringSubmatch(text); m != nil {
		return r.addSubnet(s, q, m[1], atoi(m[2]), m[3])
	}
	if m := r.kernel.FindStringSubmatch(text); m != nil {
		return r.addSubnet(s, q, m[1], ones(m[2]), m[3])
	}
	return false
}

func (r *subnetReader) next() {
	r.host++
	r.index, r.names = 0, map[string]bool{}
}

func (r *subnetReader) addSubnet(s *Set, q finding.Quote, addr string, bits int, device string) bool {
	a, err := netip.ParseAddr(addr)
	if err != nil || device == "" || bits < 1 || bits >= a.BitLen()-1 || a.IsLinkLocalUnicast() || a.IsLoopback() {
		return false // a network of one or two addresses joins two ends of a cable
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return false
	}
	s.addObservation(Subnet, []string{p.String(), device, strconv.Itoa(r.host)}, q, "", -1)
	return true
}

// ones counts the bits of a mask; -1 where it is none.
func ones(mask string) int {
	n, zero := 0, false
	for part := range strings.SplitSeq(mask, ".") {
		v := atoi(part)
		if v < 0 || v > 255 {
			return -1
		}
		for b := 7; b >= 0; b-- {
			switch set := v>>b&1 == 1; {
			case set && zero:
				return -1
			case set:
				n++
			default:
				zero = true
			}
		}
	}
	return n
}
