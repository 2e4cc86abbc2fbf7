package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/doctor/traffic"
	"busbar.dev/input/nccllog"
	"busbar.dev/unit"
)

func trafficOf(t *testing.T, text string) *traffic.Run {
	t.Helper()
	l, err := nccllog.ReadLog("rings.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := traffic.From(l, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTraffic(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "examples", "rings.log"))
	if err != nil {
		t.Fatal(err)
	}
	r := trafficOf(t, string(data))
	var text bytes.Buffer
	if err := Print(&text, TextOptions{}, func(p *Page, r *traffic.Run) { Traffic(p, r, unit.GiB) }, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 ranks on 2 hosts, 2 channels", "node0  mlx5_0  1.5 GiB", "0, 1: 0 1 (0›0) 2 3 (0›0)",
		"0: 0 (1 =2-3)", "idle",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// Names in a log are the log's: markup and escapes must not get through.
func TestTrafficHostile(t *testing.T) {
	text := "a<b>\x1b[31m:1:2 [0] NCCL INFO Channel 00/01 : 0 1\na<b>\x1b[31m:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks " +
		"2 cudaDev 0 busId 1000 - Init COMPLETE\n" +
		"a<b>\x1b[31m:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->1\n"
	r := trafficOf(t, text)
	var out bytes.Buffer
	if err := Print(&out, TextOptions{Color: true}, func(p *Page, r *traffic.Run) { Traffic(p, r, unit.GiB) },
		r); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b[31ma") || strings.Contains(out.String(), "b>\x1b") {
		t.Errorf("an escape got through: %q", out.String())
	}
}
