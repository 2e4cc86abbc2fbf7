package k8s

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// Made up, in the layout of kubectl 1.28.
const describeText = `$ kubectl describe node n7
Name:               n7
Labels:             kubernetes.io/hostname=n7
                    nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
                    network.topology.nvidia.com/leaf=l1
Unschedulable:      true
Conditions:
  Type            Status  LastHeartbeatTime                LastTransitionTime               Reason           Message
  ----            ------  -----------------                ------------------               ------           -------
  MemoryPressure  False   Thu, 14 Mar 2024 08:00:56 +0000  Tue, 05 Mar 2024 10:12:41 +0000  HasMemory        enough memory
  XidSeen         True    Thu, 14 Mar 2024 08:00:56 +0000  Tue, 05 Mar 2024 10:12:41 +0000  Xid              GPU 3
  KernelReady     True    Thu, 14 Mar 2024 08:00:56 +0000  Tue, 05 Mar 2024 10:12:41 +0000  KernelIsReady    fine
  Ready           Unknown Thu, 14 Mar 2024 08:00:56 +0000  Tue, 05 Mar 2024 10:13:59 +0000  NodeStatus       no word from it
Capacity:
  cpu:                 192
  nvidia.com/gpu:      8
Allocatable:
  nvidia.com/gpu:      7
System Info:
  Kernel Version:      5.15
Allocated resources:
  nvidia.com/gpu       4
`

var describe = readertest.Reader{Match: MatchDescribe, Read: ReadDescribe}

func TestDescribe(t *testing.T) {
	f := describe.Text(t, describeText+"\n\nName: n8\nCapacity:\n  nvidia.com/gpu: 8\n")
	if len(f.Hosts) != 2 || f.Hosts[1].Name != "n8" || f.TypeOf(0).Count(cluster.GPU) != 8 ||
		f.TypeOf(0).Devices[0].Model.Value != "NVIDIA-H100-80GB-HBM3" ||
		readertest.Shape(&f.Cluster) != "l1 tier=0 hosts=n7\n" {
		t.Errorf("%+v, %s", f.Hosts, readertest.Shape(&f.Cluster))
	}
	var got []string
	for _, w := range f.Warnings {
		got = append(got, w.ID+" "+w.Severity+" "+w.String())
	}
	want := `condition-xidseen warn x:2: n7: condition XidSeen is True: Xid: GPU 3
condition-ready error x:2: n7: condition Ready is Unknown: NodeStatus: no word from it
node-cordoned note x:2: n7: it is cordoned: no new job starts there
gpus-not-allocatable warn x:2: n7: 7 of 8 nvidia.com/gpu can be allocated`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	f = describe.Text(t, "Name:  short\n[...]\nAllocatable:\n  nvidia.com/gpu:     2\n[...]\n")
	if len(f.Hosts) != 1 || f.TypeOf(0).Count(cluster.GPU) != 2 || len(f.Warnings) != 0 {
		t.Errorf("shortened: %+v, %v", f.Hosts, f.Warnings)
	}
	if f = describe.Text(t, "Name:  cut\nRoles:  worker\nLabels:  a=b\n"); len(f.Hosts) != 1 || f.TypeOf(0) != nil {
		t.Errorf("cut before what it has: %+v", f.Hosts)
	}
	for _, pod := range []string{"", "Name: a-pod\nConditions:\n  Type Status\n  Ready True\n"} {
		if MatchDescribe([]byte(pod)) {
			t.Errorf("%q taken for a node", pod)
		}
	}
}

// The object says the same as what describes it.
func TestHealthOfObjects(t *testing.T) {
	f, err := Read("x", strings.NewReader(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{"unschedulable":true},
"status":{"capacity":{"amd.com/gpu":"8"},"allocatable":{"amd.com/gpu":"6"},"conditions":[{"type":"Ready","status":"True"},
{"type":"Disk\u001b","status":"True","reason":"r"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	ids := ""
	for _, w := range f.Warnings {
		ids += w.ID + " "
	}
	if ids != "condition node-cordoned gpus-not-allocatable " {
		t.Errorf("%s", ids)
	}
}

func FuzzDescribe(f *testing.F) { describe.Fuzz(f, nil, describeText) }

// A node whose beginning was cut off has the name of its host, and one without GPUs is said to have none.
func TestDescribedFromTheMiddle(t *testing.T) {
	_, text, _ := strings.Cut(strings.ReplaceAll(describeText, "nvidia.com/gpu", "pods"), "Unschedulable:")
	f := describe.Text(t, strings.Replace(text, "Capacity:",
		"Addresses:\n  InternalIP:  10.0.0.7\n  Hostname:    n7\nCapacity:", 1))
	if len(f.Hosts) != 1 || f.Hosts[0].Name != "n7" || len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0].Text, "no capacity for GPUs") {
		t.Errorf("%+v, %v", f.Hosts, f.Warnings)
	}
}
