package evidence

import "testing"

// What the readers of launchers, addresses and health masks take from a line.
func TestLaunchLines(t *testing.T) {
	for _, c := range []struct {
		text string
		kind Kind
		args string
	}{
		{"ssh: Could not resolve hostname box-3.train: Name or service not known", NameUnknown, "box-3.train,"},
		{"[c10d] The IPv6 network addresses of (box-0, 29400) cannot be retrieved (gai error: -2 - Name or service not " +
			"known).", NameUnknown, "box-0,ipv6"},
		{"wait timeout after 600000ms, keys: /x", TimeLimit, "600"},
		{"b:1:1 [0] NCCL INFO Bootstrap : Using eth3:10.8.7.6<0>", OwnNet, "eth3,10.8"},
		{
			"b:1:1 [0] s.cc:1 NCCL WARN socketStartConnect: Connect to 172.30.0.1<4711> failed : Connection timed out", PeerNet,
			"bridge,,172.30",
		},
		{"b:1:1 [0] s.cc:1 NCCL WARN Connect to fe80::9%ib2<4711> failed : Connection timed out", PeerNet, "link-local,ib2,"},
		{"failed to connect to [::ffff:255.0.0.4]:29400 (errno: 110 - Connection timed out).", PeerNet, "impossible,,255.0"},
		{"localGid ::ffff:10.1.2.3 remoteGids::ffff:10.1.2.9", GIDPair, "together"},
		{"localGid fd00:1::5 remoteGids fd00:2::5", GIDPair, "apart"},
		{"MNNVL state 3 healthMask 0x9a", FabricHealth, "an unhealthy route"},
		{"    inet 10.1.2.3  netmask 255.255.255.0  broadcast 10.1.2.255", Subnet, ""},
	} {
		list := read(t, c.text).All(c.kind)
		if c.args == "" {
			if len(list) > 0 {
				t.Errorf("%q gives %v without an interface", c.text, list[0].Args)
			}
			continue
		}
		if len(list) != 1 || join(list[0].Args) != c.args {
			t.Errorf("%q: %d of %s, want %s", c.text, len(list), c.kind, c.args)
			for _, o := range list {
				t.Logf("%v", o.Args)
			}
		}
	}
}

func join(args []string) string {
	s := ""
	for i, a := range args {
		if i > 0 {
			s += ","
		}
		s += a
	}
	return s
}

// Masks of routing tables and ifconfig.
func TestOnes(t *testing.T) {
	for mask, want := range map[string]int{
		"255.255.240.0": 20, "255.255.255.255": 32, "0.0.0.0": 0, "255.0.255.0": -1, "256.0.0.0": -1, "x": -1,
	} {
		if n := ones(mask); n != want {
			t.Errorf("%s has %d bits, want %d", mask, n, want)
		}
	}
}
