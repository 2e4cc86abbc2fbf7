package agent

import (
	"errors"
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
		{"gpu02:7643", net, false},
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
		{"10.1.2.4:0", net, false},
		{"10.1.2.4", net, false},
	} {
		at, err := place(c.meet)
		if own, _ := place(c.own); err == nil {
			err = reachable(at.Addr(), own.Addr())
		}
		if (err == nil) != c.may || err != nil && !errors.As(err, new(*placeError)) {
			t.Errorf("%s for a node at %s: %v", c.meet, c.own, err)
		}
	}
}
