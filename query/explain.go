package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"busbar.dev/doctor/traffic"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// Explain asks what NCCL set up in a run, from its log: rings, trees and channels on hosts, GPUs and NICs, and how much
// of an all-reduce passes each NIC.
type Explain struct {
	Logs []string `arg:"" name:"log" page:"file" names:"files" help:"Logs of one job with NCCL_DEBUG=INFO, of some or all ranks; folders of logs; - for standard input."`
	Comm string   `placeholder:"ID" help:"Communicator: its id, or its index in the log from 0 (default: the largest)."`
	Size Size     `default:"1G" placeholder:"SIZE" help:"Size of the all-reduce to count bytes for (default 1G)."`
}

// ExplainDoc is the answer to Explain: what NCCL set up, and where the bytes of an all-reduce go.
type ExplainDoc struct {
	*traffic.Run
	Size unit.Bytes `json:"size_bytes"` // of the all-reduce
	Noted
}

// Run reads the logs and lays out a communicator.
func (q Explain) Run(ctx context.Context, env Env) (doc *ExplainDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	size, err := q.Size.bytes()
	if err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	l, err := env.ncclLogs(ctx, q.Logs)
	if err != nil {
		return nil, err
	}
	run, err := traffic.From(l, q.Comm)
	if err != nil {
		return nil, err
	}
	return &ExplainDoc{Run: run, Size: size}, nil
}

// ncclLogs reads the logs of one job.
func (e *Env) ncclLogs(ctx context.Context, names []string) (*nccllog.Log, error) {
	if len(names) == 0 {
		return nil,
			failure.In("log", errors.New("no log given; expected logs of NCCL, folders of them, or - for standard input"))
	}
	r := nccllog.NewReader()
	for _, name := range names {
		err := e.eachInput(ctx, name, "the logs", func(path string, in io.Reader, _ bool) error {
			return failure.Cannot(r.Add(path, in))
		})
		if err != nil {
			return nil, err
		}
	}
	if r.Empty() {
		return nil, fmt.Errorf("%s: no record of NCCL; expected lines such as \"host:12:34 [0] NCCL INFO …\"; run with "+
			"NCCL_DEBUG=INFO", strings.Join(names, ", "))
	}
	return r.Log(), nil
}
