package browsertests

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPlainNames opens views whose documents advise by flags of the command: the page has no flags.
func TestPlainNames(t *testing.T) {
	p := start(t)
	for _, v := range []struct{ path, until, want string }{
		{"/step?c=dgx-h100:8&m=llama3-70b&tp=8&sp=1&pp=2&zero=1&global-batch=64", stepped, "vpp=2"},
		{"/predict?c=dgx-h100:4", answered, "ask about one size"},
		{"/plan?c=dgx-h100:8&m=llama3-70b", planned, ""},
	} {
		p.open(v.path, v.until)
		text, err := eval[string](p, `document.querySelector('.view > .cards').innerText`)
		if err != nil || strings.Contains(text, " --") || !strings.Contains(text, v.want) {
			t.Errorf("%s, %v:\n%s", v.path, err, text)
		}
		p.clean(v.path)
	}
}

// TestStrangeParameters gives addresses what their views do not have: each says so.
func TestStrangeParameters(t *testing.T) {
	p := start(t)
	for _, path := range []string{"/cluster?c=dgx-h100:2", "/fleet?show=nodes", "/jobs?job=x", "/doctor"} {
		p.open(path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"colour=red",
			`document.querySelector('.note.wide')?.textContent.includes('colour')`)
		p.open(path, `document.querySelector('h1')`)
		if said, err := eval[bool](p, `Boolean(document.querySelector('.note.wide'))`); err != nil || said {
			t.Errorf("%s is said to have something strange (%v)", path, err)
		}
	}
	p.clean("strange parameters")
}

// TestUploadedName opens the link of an uploaded cluster: the list has its name.
func TestUploadedName(t *testing.T) {
	p := start(t)
	p.open("/cluster", drawn)
	p.do(chromedp.SetUploadFiles(`.controls input[type=file]`, []string{example(t, "two-types.yaml")}))
	p.wait(`location.search.includes('@') && !document.querySelector('.busy')`)
	link, err := eval[string](p, `location.pathname + location.search`)
	if err != nil {
		t.Fatal(err)
	}
	p.open(link, drawn)
	if name, err := eval[string](p,
		`document.querySelector('.controls select').selectedOptions[0].textContent`); err != nil || name == "uploaded file" ||
		name == "" {
		t.Errorf("the uploaded cluster is called %q (%v)", name, err)
	}
	p.clean("an uploaded cluster")
}
