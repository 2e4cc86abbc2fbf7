package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"busbar.dev/unit"
)

var update = flag.Bool("update", false, "rewrite docs/format/documents.md")

const documentsPage = "../docs/format/documents.md"

// TestDocumentsPage holds the page about the documents against their types: what is printed is documented, and by the
// same words as in go doc.
func TestDocumentsPage(t *testing.T) {
	got := documents(t)
	if *update {
		if err := os.WriteFile(documentsPage, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(documentsPage)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("docs/format/documents.md is not what the types say; go test ./query -run Documents -update rewrites it")
	}
}

// documents is the page.
func documents(t *testing.T) string {
	found := structs(t)
	roots := []string{"measure.Check", "measure.GPUNode", "measure.RDMA"}
	for name := range found {
		if strings.HasSuffix(name, "Doc") && ast.IsExported(name[strings.LastIndexByte(name, '.')+1:]) {
			roots = append(roots, name)
		}
	}
	slices.Sort(roots)
	var b strings.Builder
	fmt.Fprintf(&b, `# The documents of --json

Version %d. A command prints one document with --json, which begins with its kind and version; the page of busbar serve
answers with the same ones, and package query gives them to Go programs. Within a version, fields are only added. This page is made from the types. A line is a
field, its type and its meaning. A field with a question mark is left out where it is empty. Types without a package have
a heading here; for others see go doc. Quantities are JSON numbers whose type is their unit. Names that end in _s, _GBps
or _bytes are seconds, 10⁹ bytes per second in one direction, and bytes.
`, Version)
	written := map[string]bool{}
	for _, name := range roots {
		found.write(&b, t, name, written, 2)
	}
	return b.String()
}

type declared struct {
	doc    string
	prefix string // of its package
	fields *ast.FieldList
}

type declarations map[string]declared

// structs are the struct types of the package, and with the package's name those of packages whose types many documents
// have.
func structs(t *testing.T) declarations {
	found := declarations{}
	for _, dir := range []string{
		"query", "calibrate", "calibrate/truth", "doctor", "doctor/cause", "engine", "engine/bench", "engine/bench/gpu",
		"engine/device", "finding", "fleet/server", "input", "launch", "measure", "plan", "plan/campaign", "predict",
		"result",
		"result/diff", "result/pairs", "result/trace", "schedule", "step", "workload",
	} {
		prefix := filepath.Base(dir) + "."
		if dir == "query" {
			prefix = ""
		}
		found.add(t, filepath.Join("..", dir), prefix)
	}
	return found
}

// add adds the struct types of a folder.
func (found declarations) add(t *testing.T, dir, prefix string) {
	set := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.TypeSpec)
				if x, ok := spec.Type.(*ast.StructType); ok {
					doc := spec.Doc
					if doc == nil {
						doc = g.Doc
					}
					found[prefix+spec.Name.Name] = declared{oneLine(doc), prefix, x.Fields}
				}
			}
		}
	}
}

// named is a type's name within an expression.
var named = regexp.MustCompile(`\b[A-Za-z]\w*(\.[A-Za-z]\w*)?\b`)

// quantities are what JSON has of the types of package unit.
var quantities = map[string]string{
	"unit.Span": "seconds", "unit.Time": "seconds", "unit.Bytes": "bytes", "unit.Volume": "bytes",
	"unit.Rate": "GB/s", "unit.FLOPS": "TFLOPS", "unit.Power": "watts",
}

// TestQuantities checks that what the page says of a quantity is what JSON has of it.
func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any // a quantity
		want  string
	}{
		{"unit.Span", unit.Minute, "60"},
		{"unit.Time", unit.Millisecond, "0.001"},
		{"unit.Bytes", unit.KiB, "1024"},
		{"unit.Volume", unit.Volume(1024), "1024"},
		{"unit.Rate", 3 * unit.GBps, "3"},
		{"unit.FLOPS", 2 * unit.TFLOPS, "2"},
		{"unit.Power", unit.Kilowatt, "1000"},
	} {
		if got, err := json.Marshal(c.value); err != nil || string(got) != c.want || quantities[c.name] == "" {
			t.Errorf("%s, %q: %s, %v; want %s", c.name, quantities[c.name], got, err, c.want)
		}
	}
}

// write documents a type, and below it those of the package that stand in its fields.
func (found declarations) write(b *strings.Builder, t *testing.T, name string, written map[string]bool, level int) {
	if written[name] {
		return
	}
	written[name] = true
	d := found[name]
	if d.doc == "" {
		t.Errorf("%s has no comment", name)
	}
	fmt.Fprintf(b, "\n%s %s\n\n", strings.Repeat("#", level), name)
	if about := firstSentence(d.doc, name[strings.LastIndexByte(name, '.')+1:]); !strings.HasPrefix(about, "the answer ") {
		fmt.Fprintf(b, "%s.\n\n", strings.ToUpper(about[:1])+about[1:])
	}
	b.WriteString("```\n")
	var fields bytes.Buffer
	w := tabwriter.NewWriter(&fields, 0, 0, 2, ' ', 0)
	var inner []string
	for _, f := range d.fields.List {
		tag := ""
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag = reflect.StructTag(text).Get("json")
		}
		field, options, _ := strings.Cut(tag, ",")
		if field == "-" || field == "" && len(f.Names) > 0 {
			continue
		}
		kind := named.ReplaceAllStringFunc(strings.ReplaceAll(types.ExprString(f.Type), "*", ""), func(name string) string {
			if q := quantities[name]; q != "" {
				return q
			}
			if strings.HasPrefix(name, "unit.") {
				t.Errorf("%s: the page does not say what JSON has of it", name)
			}
			full := name
			if !strings.Contains(name, ".") {
				full = d.prefix + name
			}
			if _, ok := found[full]; !ok {
				if !ast.IsExported(name[strings.LastIndexByte(name, '.')+1:]) {
					return name
				}
				return full
			}
			inner = append(inner, full)
			return full
		})
		if field == "" {
			field = "(its fields)"
		}
		about, first := cmp.Or(oneLine(f.Doc), oneLine(f.Comment)), ""
		if len(f.Names) > 0 {
			first = f.Names[0].Name
		}
		if strings.Contains(options, "omit") {
			field += "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", field, kind, firstSentence(about, first))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	b.Write(regexp.MustCompile(" +\n").ReplaceAll(fields.Bytes(), []byte("\n")))
	b.WriteString("```\n")
	for _, n := range inner {
		if !strings.HasSuffix(n, "Doc") {
			found.write(b, t, n, written, level+1)
		}
	}
}

// firstSentence is a comment's first sentence, without the name that Go's comments begin with and without the last
// stop.
func firstSentence(about, name string) string {
	about, _, _ = strings.Cut(about, ". ")
	for _, verb := range []string{" is ", " are "} {
		about = strings.TrimPrefix(about, name+verb)
	}
	return strings.TrimSuffix(about, ".")
}

func oneLine(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	return strings.Join(strings.Fields(g.Text()), " ")
}
