package joblog

import (
	"strconv"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

// records reads NCCL's records on a line. Most say nothing of how a job is, and are left before anything of the line is
// looked at.
func (r *Reader) records(l *nccllog.Line) {
	read := false
	for i := range l.Records {
		rec := &l.Records[i]
		if rec.Host == "" || rec.Level != "WARN" && r.seen[about{Process, rec.Host, rec.PID}] && !tells(rec.Message) {
			continue
		}
		if !read {
			r.prefix(l.Text)
			read = true
		}
		r.record(rec, Event{Kind: Process, Rank: r.rank, Host: rec.Host, PID: rec.PID, Text: strings.TrimRight(l.Text, " ")})
	}
}

// tells reports messages of which there are events.
func tells(message any) bool {
	switch m := message.(type) {
	case *nccllog.CommLine, *nccllog.InitTimes:
		return true
	case *nccllog.Devices:
		return m.OOB != "" || len(m.NICs) > 0 && m.NICs[0].Addr != ""
	}
	return false
}

// record reads one record of such a line.
func (r *Reader) record(rec *nccllog.Record, e Event) {
	r.addOnce(e, rec.Host, rec.PID)
	switch m := rec.Message.(type) {
	case *nccllog.CommLine:
		r.comm(e, m)
	case *nccllog.InitTimes:
		r.timed(e, m)
	case *nccllog.Devices:
		e.Kind = Address
		for i := range m.NICs {
			r.address(e, m.NICs[i].Addr)
		}
		r.address(e, m.OOB)
	}
	if rec.Level == "WARN" {
		if p := peerLine.FindStringSubmatch(rec.Text); p != nil {
			e.Peer = p[1]
		}
		r.rows = shapes().set.All(rec.Text)
		if s := r.match("nccl", &e, rec.Text); s != nil {
			e.Kind = s.Kind
			r.addEvent(e)
		}
	}
}

// address keeps an address that a host says it uses.
func (r *Reader) address(e Event, addr string) {
	if e.Peer = addr; addr != "" {
		r.addOnce(e, e.Host+" "+addr, 0)
	}
}

// comm reads the beginning and the end of a communicator.
func (r *Reader) comm(e Event, m *nccllog.CommLine) {
	id, err := strconv.ParseUint(strings.TrimPrefix(m.ID, "0x"), 16, 64)
	switch e.Comm, e.CommRank, e.NRanks = id, m.Rank, m.NRanks; m.What {
	case nccllog.AbortStart, nccllog.DestroyStart:
		e.Kind, err = CommAbort, nil
	case nccllog.InitStart:
		e.Kind = InitStart
	case nccllog.InitComplete: // before 2.16 without an id
		e.Kind, err = InitComplete, nil
	default:
		return
	}
	if err == nil {
		r.addEvent(e)
	}
}

// timed reads how long the making of the process's last communicator took; the bootstrap is the wait for the other
// members.
func (r *Reader) timed(e Event, m *nccllog.InitTimes) {
	if m.Bootstrap < 0 || m.Bootstrap > 1e9 {
		return
	}
	e.Kind, e.CommRank, e.NRanks, e.Wait = InitTimed, m.Rank, m.NRanks, m.Bootstrap
	for i := len(r.log.Events) - 1; i >= 0; i-- {
		if c := &r.log.Events[i]; c.Kind == InitComplete && c.PID == e.PID && c.Host == e.Host {
			e.Comm = c.Comm
			break
		}
	}
	r.addEvent(e)
}

var peerLine = lazyre.New(`(?:remote peer|peer) ([^\s<]+)<(\d+)>`)
