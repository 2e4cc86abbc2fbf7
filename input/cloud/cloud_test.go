package cloud

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// Made samples of each cloud: two instances below one leaf and one below another.
var samples = map[string]string{
	"aws": `{"Instances": [
 {"InstanceId": "i-1", "InstanceType": "p5.48xlarge", "GroupName": "train", "NetworkNodes": ["nn-a", "nn-b", "nn-c"], "ZoneId": "use1-az1"},
 {"InstanceId": "i-2", "InstanceType": "p5.48xlarge", "GroupName": "train", "NetworkNodes": ["nn-a", "nn-b", "nn-c"]},
 {"InstanceId": "i-3", "InstanceType": "p5.48xlarge", "NetworkNodes": ["nn-a", "nn-b", "nn-d"]}]}`,
	"google": `[
 {"name": "i-1", "machineType": "zones/z/machineTypes/a3-megagpu-8g", "resourceStatus": {"physicalHostTopology": {"cluster": "nn-a", "block": "nn-b", "subblock": "nn-c", "host": "h1"}}},
 {"name": "i-2", "resourceStatus": {"physicalHostTopology": {"cluster": "nn-a", "block": "nn-b", "subblock": "nn-c", "host": "h2"}}},
 {"name": "i-3", "resourceStatus": {"physicalHostTopology": {"cluster": "nn-a", "block": "nn-b", "subblock": "nn-d", "host": "h3"}}}]`,
	"oracle": `{"data": {"items": [
 {"instance-id": "i-1", "instance-shape": "BM.GPU.H100.8", "compute-hpc-island-id": "nn-a", "compute-network-block-id": "nn-b", "compute-local-block-id": "nn-c"},
 {"instance-id": "i-2", "compute-hpc-island-id": "nn-a", "compute-network-block-id": "nn-b", "compute-local-block-id": "nn-c"},
 {"instance-id": "i-3", "compute-hpc-island-id": "nn-a", "compute-network-block-id": "nn-b", "compute-local-block-id": "nn-d"}]}}`,
}

func TestRead(t *testing.T) {
	want := readertest.Flush(`
		nn-c tier=0 hosts=i-[1-2]
		nn-b tier=1 under=nn-c,nn-d
		nn-a tier=2 under=nn-b
		nn-d tier=0 hosts=i-3`)
	for name, text := range samples {
		if !Match([]byte(text)) {
			t.Errorf("%s is not recognised", name)
		}
		f, err := Read(name, strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := readertest.Shape(&f.Cluster)
		if name == "aws" {
			if !strings.Contains(got, "train") {
				t.Errorf("no placement group in\n%s", got)
			}
			var kept []string
			for l := range strings.Lines(got) {
				if !strings.Contains(l, "train") {
					kept = append(kept, l)
				}
			}
			got = strings.Join(kept, "")
		}
		if got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
}

func TestAzure(t *testing.T) {
	text := `[{"name": "vm0", "id": "/subscriptions/s/providers/Microsoft.Compute/virtualMachines/vm0", "hardwareProfile": {"vmSize": "Standard_ND96isr_H100_v5"}, "virtualMachineScaleSet": {"id": "/x/gpu-set"}},
 {"name": "vm1", "id": "/subscriptions/s/providers/Microsoft.Compute/virtualMachines/vm1", "hardwareProfile": {"vmSize": "Standard_ND96isr_H100_v5"}, "virtualMachineScaleSet": {"id": "/x/gpu-set"}}]`
	f, err := Read("az", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := &f.Network; len(f.Hosts) != 2 || len(n.Switches) != 1 || !n.Switches[0].Domain ||
		n.Switches[0].Name != "gpu-set" {
		t.Errorf("%d hosts, switches %+v", len(f.Hosts), n.Switches)
	}
}

func FuzzRead(f *testing.F) {
	var seeds []string
	for _, s := range samples {
		seeds = append(seeds, s)
	}
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, func(*testing.T, *cluster.Fragment) {}, seeds...)
}
