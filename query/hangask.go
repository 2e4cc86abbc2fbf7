package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/doctor/hang"
	"busbar.dev/input/ras"
	"busbar.dev/internal/failure"
)

// answer is a RAS answer with the time it came, and what it says, unless others said it before: every answer is about the whole job.
type answer struct {
	ras.Answer

	at     time.Time
	size   int
	report *ras.Report
}

// firstAnswers are the first of two: those of the time before, where there was one.
func (q *Hang) firstAnswers(ctx context.Context, e *Env, addrs []string, before *[]answer) []answer {
	if before != nil && len(*before) > 0 {
		return *before
	}
	defer e.working("asking the RAS service")()
	return askAll(ctx, e, addrs)
}

// ask asks all addresses a second time, and adds both answers.
func (q *Hang) ask(ctx context.Context, e *Env, c *hang.Case, doc *HangDoc, addrs []string, first []answer, before *[]answer) error {
	defer e.working("asking the RAS service again")()
	second := first
	switch {
	case before != nil:
		second = askAll(ctx, e, addrs)
	case answered(first):
		var well []string // the others would cost as much time again
		for _, a := range first {
			if a.Err == nil {
				well = append(well, a.Addr)
			}
		}
		second = askAll(ctx, e, well)
	}
	if before != nil {
		*before = second
	}
	var failed error
	good := 0
	for i, list := range [][]answer{first, second} {
		if i == 1 && len(first) > 0 && &first[0] == &second[0] {
			break
		}
		for _, a := range list {
			if i == 0 {
				asked := HangAsked{Addr: a.Addr, Bytes: a.size, Silent: a.Silent}
				if a.Err != nil {
					asked.Error = a.Err.Error()
				}
				doc.Asked = append(doc.Asked, asked)
				if a.Silent > 0 {
					c.Silent(a.Addr)
				}
			}
			if a.Err != nil {
				if !errors.Is(failed, errCut) {
					failed = a.Err
				}
				continue
			}
			if a.report != nil {
				c.AddRAS(a.report, a.at)
				good++
			}
		}
	}
	if errors.Is(failed, errCut) && good == 0 {
		return failed
	}
	if good == 0 && failed != nil {
		return failure.Cannot(fmt.Errorf("%w; the service listens on localhost unless NCCL_RAS_ADDR says otherwise, from the first communicator on: on a node of the job run busbar hang --ras localhost", failed))
	}
	return nil
}

// unanswered is a note about services that did not answer where others did. What was silent is told by the verdict.
func unanswered(list []HangAsked) []string {
	var names []string
	why := ""
	for i := range list {
		if a := &list[i]; a.Error != "" && a.Silent == 0 {
			names, why = append(names, a.Addr), cmp.Or(why, a.Error)
		}
	}
	if len(names) == 0 || len(names) == len(list) {
		return nil
	}
	const most = 8
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return []string{fmt.Sprintf("%d of %d RAS services did not answer: %s (%s).", len(names), len(list), text, why)}
}

func answered(list []answer) bool {
	return slices.ContainsFunc(list, func(a answer) bool { return a.Err == nil })
}

// askAll asks several addresses at once, each for at most a few seconds, and reads the first two answers that are whole.
func askAll(ctx context.Context, e *Env, addrs []string) []answer {
	const each, all, atOnce, most = 1500 * time.Millisecond, 2500 * time.Millisecond, 64, 128 << 20
	ctx, stop := context.WithTimeout(ctx, all)
	defer stop()
	list := make([]answer, len(addrs))
	slots, room := make(chan struct{}, atOnce), ras.NewRoom(most)
	var wait sync.WaitGroup
	var mu sync.Mutex
	kept := 0
	for i := range addrs {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			a := answer{Answer: ras.Ask(ctx, addrs[i], each, room), at: e.now()}
			mu.Lock()
			defer mu.Unlock()
			if a.size = len(a.Data); a.Err == nil && kept < 2 {
				if a.report, a.Err = ras.Read(a.Addr, a.Data); a.Err == nil {
					kept++
				} else {
					a.Err = fmt.Errorf("%w: %w", errCut, a.Err)
				}
			}
			a.Data = nil
			room.Free(a.size)
			list[i] = a
			<-slots
		}()
	}
	wait.Wait()
	return list
}

// errCut marks an answer that begins as one and cannot be read.
var errCut = errors.New("RAS gave an answer that cannot be read")
