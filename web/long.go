package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"busbar.dev/report"
)

// longAnswer is from where on an answer is sent without indentation.
const longAnswer = 4 << 20

// making is held by who makes JSON, which takes several times its length.
var making sync.Mutex

// bounded is a buffer that refuses to grow without end.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("the answer has more than %d MiB; ask for less", b.most>>20)
	}
	return b.Buffer.Write(p)
}

// encoded is a document as --json prints it, of at most so many bytes.
func encoded(document any, most int) ([]byte, error) {
	making.Lock()
	defer making.Unlock()
	out := &bounded{most: most}
	if err := report.CompactJSON(out, document); err != nil || out.Len() > longAnswer {
		return out.Bytes(), err
	}
	var indented bytes.Buffer
	err := json.Indent(&indented, out.Bytes(), "", " ")
	return indented.Bytes(), err
}
