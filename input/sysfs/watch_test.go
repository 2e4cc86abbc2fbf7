package sysfs

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestPorts(t *testing.T) {
	const eth, ib = "sys/class/net/eth0/", "sys/class/infiniband/mlx5_0/ports/1/"
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		eth + "operstate": "up", eth + "carrier": "1", eth + "speed": "25000", eth + "device/vendor": "0x15b3",
		eth + "carrier_changes":     "4",
		eth + "statistics/rx_bytes": "100", eth + "statistics/tx_bytes": "200", eth + "statistics/rx_errors": "0",
		eth + "statistics/tx_errors":   "no number",
		"sys/class/net/eth1/operstate": "down", "sys/class/net/eth1/speed": "-1", "sys/class/net/eth1/device/vendor": "x",
		"sys/class/net/tun0/operstate": "unknown", "sys/class/net/tun0/carrier": "1",
		"sys/class/net/tun0/statistics/rx_errors": "5",
		"sys/class/net/lo/operstate":              "unknown", "sys/class/net/bonding_masters": "bond0",
		ib + "state": "4: ACTIVE", ib + "rate": "100 Gb/sec (4X EDR)", ib + "counters/symbol_error": "7",
		ib + "hw_counters/out_of_sequence": "1",
		ib + "counters/port_rcv_data":      "10", ib + "counters/port_xmit_data": "20",
		"sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN",
		"sys/class/infiniband/mlx5_1/ports/1/rate":  strings.Repeat("9", 5000),
	} {
		files[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	all, err := Ports(files)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]PortState{}
	for _, p := range all {
		got[p.Name] = p
	}
	if len(all) != 5 || len(got) != 5 {
		t.Fatalf("%+v", all)
	}
	if p := got["eth0"]; !p.Up || !p.Hardware || p.RDMA || p.Rate != 25e9/8 || p.Received != 100 || p.Sent != 200 ||
		len(p.Counters) != 2 || p.Counters["carrier_changes"] != 4 {
		t.Errorf("%+v", p)
	}
	if p := got["eth1"]; p.Up || p.Rate != 0 || p.State != "down" {
		t.Errorf("%+v", p)
	}
	if p := got["tun0"]; !p.Up || p.Hardware || len(p.Counters) != 0 {
		t.Errorf("%+v", p)
	}
	if p := got["mlx5_0/1"]; !p.Up || !p.RDMA || p.Rate != 12.5e9 || p.State != "ACTIVE" || p.Received != 40 ||
		p.Sent != 80 || len(p.Counters) != 2 {
		t.Errorf("%+v", p)
	}
	if p := got["mlx5_1/1"]; p.Up || p.State != "DOWN" || p.Rate != 0 {
		t.Errorf("%+v", p)
	}
	if all, err := Ports(fstest.MapFS{}); len(all) != 0 || err != nil {
		t.Errorf("a machine without ports: %v, %v", all, err)
	}
}
