package perftest

import (
	"math"
	"strings"
	"testing"
)

// Samples of our own, in the layouts of releases 4 to 6.
const (
	write = `---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_3
 Number of qps   : 4		Transport type : IB
 Mtu             : 4096[B]
 Link type       : Ethernet
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 2000.000000 != 3100.000000. CPU Frequency is not max.
 1024       5000             80.00              79.00              9.643555
 65536      500000           0.00               180.00             0.343323
---------------------------------------------------------------------------------------
`
	both = `                    RDMA_Write Bidirectional BW Test
 Dual-port       : OFF		Device         : mlx5_0
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]
 65536      1000           20000.00              20000.00
`
	latency = `                    Send Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.50           9.00         1.75               1.80           0.10            2.25                   9.00
`
)

func TestRead(t *testing.T) {
	list := Read([]byte(write + both + latency))
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	w, b, l := list[0], list[1], list[2]
	if w.Test != "RDMA_Write BW" || w.Device != "mlx5_3" || len(w.Rows) != 2 ||
		w.Best().Rate != 180e9/8 || w.Best().Line != 11 {
		t.Errorf("%+v", w)
	}
	if !b.Both || b.Device != "mlx5_0" || b.Rows[0].Rate != 10000<<20 {
		t.Errorf("%+v", b)
	}
	if !l.Latency || l.Best() != nil || math.Abs(l.Rows[0].Typical.Micros()-1.75) > 1e-6 {
		t.Errorf("%+v", l)
	}
	for text, want := range map[string]bool{
		write: true, latency: true, "#bytes of it\n": false, "#  size  count  type  redop  time algbw busbw\n": false,
		"": false,
	} {
		if Match([]byte(text)) != want {
			t.Errorf("%.40q: %v", text, !want)
		}
	}
}

// A column of service levels stands between sizes and iterations.
func TestServiceLevels(t *testing.T) {
	list := Read([]byte(" #bytes    #sl      #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n " +
		"65536    3           1000           2048.00            1024.00                  0.016384\n"))
	if len(list) != 1 || len(list[0].Rows) != 1 || list[0].Rows[0].Rate != 1<<30 {
		t.Errorf("%+v", list)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{write, both, latency, strings.Replace(write, "180.00", "-3", 1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		Match(data)
		for _, x := range Read(data) {
			for _, r := range x.Rows {
				if r.Rate < 0 || r.Typical < 0 || r.Size < 0 {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}
