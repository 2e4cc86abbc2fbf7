package device

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Process is a worker's streams, and how it is ended.
type Process interface {
	io.Reader
	io.Writer
	// End closes what the worker reads, waits for its end and enforces it after a while.
	End(patience time.Duration)
	// Why says how the worker ended, nil while it runs.
	Why() error
}

// Worker is one process of busbar-gpu.
type Worker struct {
	Rank   int
	Hello  Hello
	Device Device

	remote  func(ctx context.Context, q Request) (Answer, error) // instead of a process of this host
	process Process
	answers chan Answer // closed when the worker ends or writes what is no answer
	broken  error       // why; read after answers is closed
	next    int
	ended   sync.Once
}

// maxAnswer is the longest line that is read of a worker.
const maxAnswer = 8 << 20

// NewWorker waits for a process to say who it is.
func NewWorker(ctx context.Context, rank int, p Process) (*Worker, error) {
	w := &Worker{Rank: rank, process: p, answers: make(chan Answer, 4)}
	go w.read()
	a, err := w.await(ctx, 0)
	if err != nil {
		w.End()
		return nil, err
	}
	if a.Hello == nil {
		w.End()
		return nil, fmt.Errorf("rank %d: the program is no busbar-gpu: its first line names none", rank)
	}
	w.Hello = *a.Hello
	return w, nil
}

// NewRemote is a worker that is asked through somebody else, who ends it too.
func NewRemote(rank int, hello Hello, ask func(ctx context.Context, q Request) (Answer, error)) *Worker {
	return &Worker{Rank: rank, Hello: hello, remote: ask}
}

func (w *Worker) read() {
	defer close(w.answers)
	scan := bufio.NewScanner(w.process)
	scan.Buffer(make([]byte, 64<<10), maxAnswer)
	for scan.Scan() {
		var a Answer
		if err := json.Unmarshal(scan.Bytes(), &a); err != nil {
			line := scan.Bytes()
			w.broken = fmt.Errorf("a line that is no answer: %.80q", line)
			return
		}
		w.answers <- a
	}
	w.broken = scan.Err()
}

// await waits for the answer of a request.
func (w *Worker) await(ctx context.Context, id int) (Answer, error) {
	for {
		select {
		case a, ok := <-w.answers:
			switch {
			case !ok:
				return a, w.gone()
			case a.ID == id:
				return a, nil
			}
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		}
	}
}

// GoneError is a worker that ended while it was asked.
type GoneError struct {
	Rank int
	Host string
	PID  int
	Err  error
}

func (e *GoneError) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("rank %d: busbar-gpu ended: %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("rank %d (process %d on %s): busbar-gpu ended: %v", e.Rank, e.PID, e.Host, e.Err)
}
func (e *GoneError) Unwrap() error { return e.Err }

func (w *Worker) gone() error {
	err := w.process.Why()
	switch {
	case w.broken != nil:
		err = w.broken
	case err == nil:
		err = errors.New("its connection is closed")
	}
	return &GoneError{w.Rank, w.Hello.Host, w.Hello.PID, err}
}

// Ask sends a request and waits for its answer. A failure that the worker names is a *Failure.
func (w *Worker) Ask(ctx context.Context, q Request) (Answer, error) {
	w.next++
	q.ID = w.next
	a, err := w.send(ctx, q)
	if err == nil && a.Failure != nil {
		err = a.Failure
	}
	if q.Do == Open && err == nil && a.Device != nil {
		w.Device = *a.Device
	}
	return a, err
}

// send is the answer to a request.
func (w *Worker) send(ctx context.Context, q Request) (Answer, error) {
	if w.remote != nil {
		return w.remote(ctx, q)
	}
	if _, err := w.process.Write(Line(q)); err != nil {
		return Answer{}, w.gone()
	}
	return w.await(ctx, q.ID)
}

// End ends the process and all that its GPU does for it.
func (w *Worker) End() {
	w.ended.Do(func() {
		if w.process != nil {
			w.process.End(3 * time.Second)
		}
	})
}

// Team are the ranks of a communicator.
type Team []*Worker

// RankError is what a rank answered.
type RankError struct {
	Rank int
	Host string
	Err  error
}

func (e *RankError) Error() string {
	var gone *GoneError
	if errors.As(e.Err, &gone) {
		return gone.Error()
	}
	return fmt.Sprintf("rank %d on %s: %v", e.Rank, e.Host, e.Err)
}
func (e *RankError) Unwrap() error { return e.Err }

// Ask asks ranks at the same time, those for which of gives a request, and waits for all. Where one fails, the others
// may wait for it for ever: the first failure is the answer, and the team can only be ended then. A rank that ended
// counts before those that noticed.
func (t Team) Ask(ctx context.Context, of func(rank int) (Request, bool)) ([]Answer, error) {
	type reply struct {
		rank int
		Answer
		err error
	}
	replies := make(chan reply, len(t))
	asked := 0
	for i, w := range t {
		q, ok := of(i)
		if !ok {
			continue
		}
		asked++
		go func() {
			a, err := w.Ask(ctx, q)
			replies <- reply{i, a, err}
		}()
	}
	answers := make([]Answer, len(t))
	var first error
	var patience <-chan time.Time
	for asked > 0 {
		select {
		case r := <-replies:
			asked--
			answers[r.rank] = r.Answer
			switch {
			case r.err == nil:
			case first == nil, errors.As(r.err, new(*GoneError)) && !errors.As(first, new(*GoneError)):
				first = &RankError{r.rank, t[r.rank].Hello.Host, r.err}
				patience = time.After(300 * time.Millisecond) // for one that ended to be seen
			}
		case <-patience:
			return nil, first
		}
	}
	if first != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return answers, first
}

// All asks every rank the same but for what edit changes, which may be nil.
func (t Team) All(ctx context.Context, q Request, edit func(rank int, q *Request)) ([]Answer, error) {
	return t.Ask(ctx, func(rank int) (Request, bool) {
		x := q
		if edit != nil {
			edit(rank, &x)
		}
		return x, true
	})
}

// Join makes the workers ranks of a communicator.
func (t Team) Join(ctx context.Context) error {
	a, err := t[0].Ask(ctx, Request{Do: Key})
	if err != nil {
		return &RankError{0, t[0].Hello.Host, err}
	}
	_, err = t.All(ctx, Request{Do: Join, Key: a.Key, Ranks: len(t)}, func(rank int, q *Request) { q.Rank = rank })
	return err
}

// End ends all of them.
func (t Team) End() {
	var all sync.WaitGroup
	for _, w := range t {
		if w != nil {
			all.Go(w.End)
		}
	}
	all.Wait()
}
