package web

import (
	"context"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
	"busbar.dev/query"
	"busbar.dev/report"
)

// question is one of package query's as the page asks it: its parameters are the fields of its struct, its answer is
// its document.
type question struct {
	name   string // in the address: /api/NAME
	words  []string
	params func() []query.Param
	empty  func() any // a new question
	run    func(ctx context.Context, question any, env query.Env) (document any, err error)
	// pictures are values of o that give a picture or a file instead of JSON.
	pictures map[string]picture
	within   time.Duration
	heavy    bool // takes all cores for long
	fresh    bool // about this machine, where no cluster is named: kept for a short time only
}

// picture is a document as something else than JSON.
type picture struct {
	flag  string // for -o of the command
	mime  string
	write func(w io.Writer, document any) error
}

const (
	shortly = 10 * time.Second
	longer  = 60 * time.Second
)

const (
	jsonType    = "application/json; charset=utf-8"
	svgType     = "image/svg+xml"
	textType    = "text/plain; charset=utf-8"
	archiveType = "application/gzip"
)

// asks makes a question of a type of package query. The words are those of its command.
func asks[Q interface {
	Run(ctx context.Context, env query.Env) (*D, error)
}, D any](words string, within time.Duration) question {
	return question{
		// read when first asked: every command starts with this list
		name: words, words: strings.Fields(words), within: within,
		params: sync.OnceValue(func() []query.Param { return query.Params(*new(Q)) }),
		empty:  func() any { return new(Q) },
		run: func(ctx context.Context, q any, env query.Env) (any, error) {
			d, err := reflect.ValueOf(q).Elem().Interface().(Q).Run(ctx, env)
			if d == nil {
				return nil, err
			}
			return d, err
		},
	}
}

// called gives a question another name than its command's words.
func (q question) called(name string) question {
	q.name = name
	return q
}

// draws adds a picture of a question's document.
func draws[D any](q question, name, flag, mime string, write func(io.Writer, *D) error) question {
	pictures := map[string]picture{name: {flag, mime, func(w io.Writer, d any) error { return write(w, d.(*D)) }}}
	for k, p := range q.pictures {
		pictures[k] = p
	}
	q.pictures = pictures
	return q
}

// pictured adds a document's drawing, as SVG; the page has no use for pixels.
func pictured[D any](q question, flag string, draw func(*D) (*report.Picture, error)) question {
	return draws(q, "svg", flag, svgType, func(w io.Writer, d *D) error {
		p, err := draw(d)
		if err != nil {
			return err
		}
		return p.SVG(w)
	})
}

// machine marks a question that is about this machine where it names no cluster.
func (q question) machine() question {
	q.fresh = true
	return q
}

// long marks a question that takes all cores.
func (q question) long() question {
	q.heavy = true
	return q
}

// mapQuestion, auditQuestion and pathQuestion share an address: which is meant shows in what is said.
var (
	mapQuestion   = mapPictures(asks[query.Map, query.MapDoc]("map", shortly).machine())
	auditQuestion = asks[query.Audit, query.AuditDoc]("map --audit", shortly).called("map").machine()
	pathQuestion  = asks[query.Path, query.PathDoc]("map", shortly).machine()
)

// doctorQuestion, hangQuestion and explainQuestion take logs, with POST /api/doctor and POST /api/hang or as uploads;
// planQuestion gives files too.
var (
	doctorQuestion  = asks[query.Doctor, query.DoctorDoc]("doctor", longer).long()
	explainQuestion = pictured(asks[query.Explain, query.ExplainDoc]("doctor explain", longer).long().called("explain"),
		"svg=-", func(d *query.ExplainDoc) (*report.Picture, error) { return report.Traffic(d.Run), nil })
	hangQuestion = asks[query.Hang, query.HangDoc]("hang", longer).long()
	planQuestion = asks[query.Plan, query.PlanDoc]("plan", longer).long()
)

// questions are all that can be asked. A parameter that a question does not have is refused.
var questions = []question{
	mapQuestion,
	pictured(asks[query.Predict, query.PredictDoc]("predict", shortly).machine(), "svg=-", report.Curves),
	asks[query.Experts, query.ExpertsDoc]("experts", shortly).machine(),
	draws(pictured(asks[query.Step, query.StepDoc]("step", shortly), "svg=-", report.StepTimeline), "trace", "trace=-",
		"application/json", report.StepTrace),
	asks[query.Envelope, query.EnvelopeDoc]("envelope", shortly),
	asks[query.Need, query.NeedDoc]("need", shortly),
	asks[query.Scale, query.ScaleDoc]("scale", shortly),
	asks[query.Resilience, query.ResilienceDoc]("goodput", shortly),
	planQuestion,
	asks[query.Place, query.PlaceDoc]("place", longer).long(),
	asks[query.Presets, query.PresetsDoc]("presets", shortly),
	asks[query.Models, query.ModelsDoc]("models", shortly),
	asks[query.Hardware, query.HardwareDoc]("hardware", shortly),
	asks[query.Release, query.ReleaseDoc]("version", shortly),
	doctorQuestion,
	hangQuestion,
	explainQuestion,
	asks[query.DoctorBench, query.DoctorBenchDoc]("doctor bench", shortly).called("measured"),
}

// mapPictures are the forms of a map that are no JSON.
func mapPictures(q question) question {
	form := func(name, mime string, write func(io.Writer, *cluster.Cluster) error) {
		q = draws(q, name, name, mime, func(w io.Writer, d *query.MapDoc) error { return write(w, d.Cluster) })
	}
	q = pictured(q, "svg", func(d *query.MapDoc) (*report.Picture, error) { return report.Drawing(d.Cluster), nil })
	form("yaml", textType, clusterfile.Write)
	form("matrix", textType, report.Matrix)
	form("nccl-xml", textType, func(w io.Writer, cl *cluster.Cluster) error {
		_, err := report.NCCLTopology(w, cl)
		return err
	})
	return q
}
