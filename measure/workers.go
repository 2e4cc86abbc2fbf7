package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/internal/failure"
)

// GPURanks are the GPUs that busbar-gpu works, one process a rank.
type GPURanks struct {
	PerHost int    `short:"n" name:"ranks" default:"0" least:"0" most:"1024" placeholder:"N" help:"Ranks per host (default: one per GPU). More than there are GPUs share them, through the network."`
	Hosts   string `placeholder:"HOSTLIST" help:"Hosts, reached through ssh: gpu[01-16] (default: this one)."`
	SSH     string `name:"ssh" default:"ssh -o BatchMode=yes" placeholder:"COMMAND" help:"What reaches a host (default ssh -o BatchMode=yes)."`
	Helper  string `name:"busbar-gpu" placeholder:"PATH" help:"The program busbar-gpu (default: beside busbar, or in PATH)."`
}

// Workers starts busbar-gpu with settings of NCCL, gives every worker a GPU, and joins them where join says so. Notes
// are worth knowing. The team must be ended.
func (g *GPURanks) Workers(ctx context.Context, with Programs, launch []string, settings map[string]string,
	join bool,
) (device.Team, []string, error) {
	var team device.Team
	var notes []string
	var err error
	if len(launch) > 0 {
		team, err = g.launched(ctx, with, launch, settings)
	} else {
		team, notes, err = g.started(ctx, with, settings)
	}
	if err == nil {
		err = g.open(ctx, team)
	}
	if err == nil && join {
		err = team.Join(ctx)
	}
	if err != nil {
		team.End()
		return nil, nil, failure.Cannot(err)
	}
	return team, notes, nil
}

// command starts a worker on a host, "" for this one.
func (g *GPURanks) command(host, path string, settings []string) ([]string, error) {
	if host == "" {
		return []string{path, "work"}, nil
	}
	args, err := gpu.SplitWords(g.SSH)
	if err != nil {
		return nil, fmt.Errorf("--ssh: %w", err)
	}
	name := cmp.Or(g.Helper, "busbar-gpu")
	if strings.HasPrefix(host, "-") {
		return nil, fmt.Errorf("--hosts: no host is called %s", host)
	}
	return append(append(append(args, host, "env"), settings...), name, "work"), nil
}

// started starts workers here or through ssh.
func (g *GPURanks) started(ctx context.Context, with Programs,
	settings map[string]string,
) (device.Team, []string, error) {
	if with.Worker == nil {
		return nil, nil, errors.New("no programs can be run here")
	}
	hosts, path, err := g.places(with)
	if err != nil {
		return nil, nil, err
	}
	begin := func(host string, rank int, extra ...string) (*device.Worker, error) {
		words := append(gpu.SettingWords(settings), extra...)
		args, err := g.command(host, path, words)
		if err != nil {
			return nil, err
		}
		p, err := with.Worker(args, words)
		if err != nil {
			return nil, err
		}
		return device.NewWorker(ctx, rank, p)
	}
	counts := make([]int, len(hosts))
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			w, err := begin(host, 0)
			if err == nil {
				defer w.End()
				var a device.Answer
				if a, err = w.Ask(ctx, device.Request{Do: device.GPUs}); err == nil {
					counts[i] = a.Count
				}
			}
			if err != nil && host != "" {
				err = fmt.Errorf("%s: %w", host, err)
			}
			errs[i] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	var team device.Team
	var notes []string
	for i, host := range hosts {
		n := cmp.Or(g.PerHost, counts[i])
		if counts[i] == 0 {
			return team, nil, fmt.Errorf("%s has no GPU that the driver shows", hostName(host))
		}
		shared := n > counts[i]
		if shared {
			notes = append(notes, fmt.Sprintf("%d ranks share %d GPUs of %s: each counts as a host of its own (NCCL_HOSTID), "+
				"and data takes the network", n, counts[i], hostName(host)))
		}
		for range n {
			var extra []string
			if shared {
				extra = []string{fmt.Sprintf("NCCL_HOSTID=busbar-%d", len(team))}
			}
			w, err := begin(host, len(team), extra...)
			if err != nil {
				return team, nil, err
			}
			team = append(team, w)
		}
	}
	return team, notes, nil
}

// places are the hosts, and where busbar-gpu is on this one.
func (g *GPURanks) places(with Programs) ([]string, string, error) {
	if g.Hosts != "" {
		hosts, err := cluster.ParseHosts(g.Hosts)
		if err != nil {
			return nil, "", fmt.Errorf("--hosts: %w", err)
		}
		return hosts, "", nil
	}
	path, err := g.program(with)
	return []string{""}, path, err
}

// program is where busbar-gpu is.
func (g *GPURanks) program(with Programs) (string, error) {
	if g.Helper != "" {
		return g.Helper, nil
	}
	if with.Helper == nil {
		return "", errors.New("no programs can be run here")
	}
	path, err := with.Helper()
	if err != nil {
		return "", fmt.Errorf("%w, --busbar-gpu PATH names it", err)
	}
	return path, nil
}

// launched has a launcher start workers, and waits for them: as many as --ranks says for all hosts together.
func (g *GPURanks) launched(ctx context.Context, with Programs, launch []string,
	settings map[string]string,
) (device.Team, error) {
	if g.PerHost == 0 {
		return nil, errors.New("--launch: how many ranks does it start? expected -n N, those of all hosts together")
	}
	hub, err := device.Listen(":0")
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	program, err := g.program(with)
	if err != nil {
		return nil, err
	}
	words := gpu.SettingWords(settings)
	args := append(append(slices.Clone(launch), "env"), words...)
	args = append(args, program, "work", "--connect", fmt.Sprintf("%s:%d", name, hub.Port()))
	// Arguments can be read by everybody on the host; launchers pass the environment on.
	p, err := with.Worker(args, append(words, "BUSBAR_GPU_TOKEN="+hub.Token))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("no more came within 2 minutes"))
	defer cancel()
	go func() { // a launcher that fails says so before the time is over
		_, _ = io.Copy(io.Discard, p) // until its end
		hub.Close()
	}()
	team, err := hub.Accept(ctx, g.PerHost)
	if err != nil {
		if why := p.Why(); why != nil {
			err = fmt.Errorf("%s: %w", launch[0], why)
		}
		p.End(time.Second)
	}
	return team, err
}

// open gives every worker a GPU: those of a host one after the other, and from the first again.
func (g *GPURanks) open(ctx context.Context, team device.Team) error {
	counts, err := team.All(ctx, device.Request{Do: device.GPUs}, nil)
	if err != nil {
		return err
	}
	next := map[string]int{}
	_, err = team.All(ctx, device.Request{Do: device.Open}, func(rank int, q *device.Request) {
		host := team[rank].Hello.Host
		q.GPU = next[host] % max(counts[rank].Count, 1)
		next[host]++
	})
	return err
}

func hostName(host string) string {
	return cmp.Or(host, "this host")
}

// busyShare is the utilization, in percent, from which somebody else is computing on a GPU.
const busyShare = 20

// busyGPUs says who is on the GPUs already: what is measured beside others says nothing. Ours are processes that do not
// count.
func busyGPUs(states []device.State, ours ...int) string {
	for _, s := range states {
		if s.Utilization == nil || *s.Utilization <= busyShare {
			continue
		}
		var who []string
		mine := 0
		for _, u := range s.Users {
			if slices.Contains(ours, u.PID) {
				mine++
			} else {
				who = append(who, strings.TrimSpace(fmt.Sprintf("%s %d", u.Name, u.PID)))
			}
		}
		if mine > 0 && len(who) == 0 {
			continue
		}
		text := fmt.Sprintf("GPU %d is busy (%d%%)", s.Index, *s.Utilization)
		if len(who) > 0 {
			text += fmt.Sprintf(", by process %s", strings.Join(who[:min(len(who), 4)], ", "))
		}
		return text
	}
	return ""
}

// Busy says who else is on the GPUs of a team while it does nothing; "" where nobody is, or nobody can say. The
// driver's utilization is of the last second, in which another command of ours may have ended.
func Busy(ctx context.Context, team device.Team) string {
	var pids []int
	var uuids []string
	for _, w := range team {
		pids, uuids = append(pids, w.Hello.PID), append(uuids, w.Device.UUID)
	}
	look := func() string {
		for i, w := range team {
			host := w.Hello.Host
			if slices.ContainsFunc(team[:i], func(o *device.Worker) bool { return o.Hello.Host == host }) {
				continue
			}
			a, err := w.Ask(ctx, device.Request{Do: device.Health})
			if err != nil { // no NVML, or a driver without it
				continue
			}
			own := slices.DeleteFunc(a.Health, func(s device.State) bool { return !slices.Contains(uuids, s.UUID) })
			if busy := busyGPUs(own, pids...); busy != "" {
				return host + ": " + busy
			}
		}
		return ""
	}
	if look() == "" {
		return ""
	}
	select {
	case <-ctx.Done():
	case <-time.After(busyAgain):
	}
	return look()
}

// busyAgain is how long after a GPU was seen busy it is looked at again.
const busyAgain = 1500 * time.Millisecond
