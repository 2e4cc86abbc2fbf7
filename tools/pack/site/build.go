package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html
var layout string

//go:embed site.css
var style []byte

//go:embed search.js
var search []byte

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// site is what is written, and what links may lead to.
type site struct {
	root  fs.FS
	pages map[string]*page  // by the path of the Markdown file
	files map[string][]byte // by the path of the site
	links int
	wrong []error
}

// page is a document.
type page struct {
	source
	doc      ast.Node
	title    string
	headings map[string]bool // their ids
}

// section is what a search finds.
type section struct {
	Page  string `json:"p"` // title of the page
	Title string `json:"t"`
	URL   string `json:"u"`
	Text  string `json:"x"`
}

// out is the path of a page in the site: a README is the index of its folder.
func out(md string) string {
	if path.Base(md) == "README.md" {
		return path.Join(path.Dir(md), "index.html")
	}
	return strings.TrimSuffix(md, ".md") + ".html"
}

// build makes all pages.
func build(root fs.FS, sources []source) (*site, error) {
	s := &site{root: root, pages: map[string]*page{}, files: map[string][]byte{"site.css": style, "search.js": search}}
	for _, src := range sources {
		p := &page{source: src, headings: map[string]bool{}}
		p.doc = markdown.Parser().Parse(text.NewReader(src.text))
		p.title = strings.TrimSuffix(path.Base(src.path), ".md")
		first := true
		walk(p.doc, func(n ast.Node) {
			if h, ok := n.(*ast.Heading); ok {
				if id, ok := h.AttributeString("id"); ok {
					p.headings[string(id.([]byte))] = true
				}
				if first {
					p.title, first = plain(h, src.text), false
				}
			}
		})
		s.pages[src.path] = p
	}
	var index []section
	for _, name := range slices.Sorted(mapKeys(s.pages)) {
		s.rewrite(s.pages[name])
	}
	nav := s.navigation()
	for _, name := range slices.Sorted(mapKeys(s.pages)) {
		p := s.pages[name]
		index = append(index, p.sections()...)
		if err := s.render(p, nav); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := errors.Join(s.wrong...); err != nil {
		return nil, err
	}
	data, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	// A script and no document, so that a page that was opened as a file may read it.
	s.files["search-index.js"] = append(append([]byte("const sections = "), data...), ";\n"...)
	return s, nil
}

// walk visits every node once.
func walk(n ast.Node, visit func(ast.Node)) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// rewrite checks the links of a page and lets them lead to pages of the site. Other files of the checkout come along.
func (s *site) rewrite(p *page) {
	walk(p.doc, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(s.target(p, string(n.Destination), false))
		case *ast.Image:
			n.Destination = []byte(s.target(p, string(n.Destination), true))
		}
	})
}

// target is where a link of a page leads in the site.
func (s *site) target(p *page, link string, image bool) string {
	s.links++
	bad := func(why string) string {
		s.wrong = append(s.wrong, fmt.Errorf("%s: link %s: %s", p.path, link, why))
		return link
	}
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return bad(err.Error())
	case u.IsAbs() || u.Host != "":
		if image || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
			return bad("pages load nothing from elsewhere; expected a file of the checkout, or an https link to read")
		}
		return link
	}
	name := p.path
	if u.Path != "" {
		name = path.Join(path.Dir(p.path), u.Path)
	}
	if info, err := fs.Stat(s.root, name); err == nil && info.IsDir() {
		name = path.Join(name, "README.md")
	}
	at := name
	if other, ok := s.pages[name]; ok {
		at = out(name)
		if u.Fragment != "" && !other.headings[u.Fragment] {
			return bad("the page has no such heading")
		}
	} else {
		data, err := fs.ReadFile(s.root, name)
		if err != nil {
			return bad("no such file")
		}
		s.files[name] = data
	}
	if u.Fragment != "" {
		at += "#" + u.Fragment
	}
	return relative(out(p.path), at)
}

// relative is a path as a page has to write it.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// navigation is the index of docs: its headings and the links in its lists.
func (s *site) navigation() []group {
	p := s.pages["docs/README.md"]
	if p == nil {
		return nil
	}
	var groups []group
	seen := map[string]bool{}
	walk(p.doc, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Title: plain(n, p.text)})
			}
		case *ast.Link:
			to := strings.TrimPrefix(string(n.Destination), "../")
			if len(groups) > 0 && !strings.Contains(to, "://") && strings.HasSuffix(to, ".html") && !seen[to] {
				seen[to] = true
				g := &groups[len(groups)-1]
				g.Links = append(g.Links, entry{plain(n, p.text), to})
			}
		}
	})
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.Links) == 0 })
}

type group struct {
	Title string
	Links []entry
}

type entry struct{ Title, URL string }

var pageTemplate = template.Must(template.New("page").Parse(layout))

// render writes one page.
func (s *site) render(p *page, nav []group) error {
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.doc); err != nil {
		return err
	}
	at := out(p.path)
	up := strings.Repeat("../", strings.Count(at, "/"))
	groups := make([]group, len(nav))
	for i, g := range nav {
		groups[i].Title = g.Title
		for _, l := range g.Links {
			groups[i].Links = append(groups[i].Links, entry{l.Title, up + l.URL})
		}
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"Title": p.title, "Up": up, "Here": up + at, "Groups": groups, "Body": template.HTML(body.String()),
	})
	s.files[at] = b.Bytes()
	return err
}

// sections are the parts of a page between its headings.
func (p *page) sections() []section {
	now := section{Page: p.title, Title: p.title, URL: out(p.path)}
	var list []section
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			list = append(list, now)
			now = section{Page: p.title, Title: plain(h, p.text), URL: out(p.path)}
			if id, ok := h.AttributeString("id"); ok {
				now.URL += "#" + string(id.([]byte))
			}
			continue
		}
		now.Text += plain(n, p.text) + "\n"
	}
	list = append(list, now)
	return slices.DeleteFunc(list, func(s section) bool { return strings.TrimSpace(s.Text) == "" })
}

// plain is the text of a node without marks.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	walk(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(src))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(src))
			}
		}
		if n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
	})
	return html.UnescapeString(strings.TrimSpace(b.String()))
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
