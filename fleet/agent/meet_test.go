package agent

import (
	"errors"
	"net/netip"
	"testing"
)

// TestMeetable tries places to which a node in the wrong hands could send others.
func TestMeetable(t *testing.T) {
	const net, here = "10.1.2.3:7643", "127.0.0.1:7643"
	for _, c := range []struct {
		meet, own string
		may       bool
	}{
		{"10.1.2.4:7643", net, true},
		{"gpu02:7643", net, true},
		{"[2001:db8::1]:7643", net, true},
		{"127.0.0.1:22", net, false},
		{"127.8.8.8:22", net, false},
		{"localhost:22", net, false},
		{"LOCALHOST.:22", net, false},
		{"[::1]:22", net, false},
		{"[::ffff:127.0.0.1]:22", net, false},
		{"0.0.0.0:22", net, false},
		{"[::]:22", net, false},
		{"169.254.169.254:80", net, false},
		{"[fe80::1%eth0]:22", net, false},
		{"224.0.0.1:22", net, false},
		{"127.0.0.1:7644", here, true},
		{"10.1.2.4:7643", here, true},
		{"169.254.169.254:80", here, false},
		{"[fe80::1%eth0]:22", "[fe80::2%eth0]:7643", true},
		{"innocent.example:22", net, false},
		{"half.example:22", net, false},
		{"innocent.example:7644", here, true},
		{"unknown.example:7643", net, false},
	} {
		at, err := reachableAddress(c.meet, c.own, names)
		if (err == nil) != c.may {
			t.Errorf("%s for a node at %s: %v", c.meet, c.own, err)
		}
		if _, parsed := netip.ParseAddrPort(at); err == nil && parsed != nil {
			t.Errorf("%s is to be met at %q, which would be resolved again", c.meet, at)
		}
	}
}

// names resolves names, some of which stand for loopback.
func names(name string) ([]string, error) {
	list := map[string][]string{
		"gpu02": {"10.1.2.5"}, "localhost": {"127.0.0.1"}, "LOCALHOST": {"127.0.0.1"},
		"innocent.example": {"127.0.0.1"}, "half.example": {"10.1.2.6", "::1"},
	}[name]
	if list == nil {
		return nil, errors.New("no such host")
	}
	return list, nil
}
