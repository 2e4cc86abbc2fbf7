package browsertests

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestLogin goes in by a token that is typed, is sent back where it wanted to go, and out again.
func TestLogin(t *testing.T) {
	p := start(t)
	where := `location.pathname + location.search`
	// Somebody who is logged in and meets the page to log in goes on by itself.
	p.open("/login?to=%2Fpredict%3Fc%3Ddgx-h100%3A2", `location.pathname === '/predict'`)
	p.wait(answered)
	// It leads nowhere but to this server.
	p.open("/login?to=%2F%2Fevil.example%2Fx", `location.pathname === '/'`)
	p.wait(home)
	p.clean("login")
	p.run(`document.getElementById('logout').click()`)
	p.wait(`location.pathname === '/login'`)
	p.do(chromedp.Navigate(p.url + "/step?c=dgx-h100:2"))
	p.wait(`location.pathname === '/login'`)
	p.clean("logged out")
	p.run(`document.getElementById('token').value = 'a wrong one'; document.querySelector('form').requestSubmit()`)
	p.wait(`document.getElementById('said').textContent.includes('no such token')`)
	p.shot("login-wrong")
	p.mu.Lock() // the browser tells of the refusal
	p.faults = nil
	p.mu.Unlock()
	p.run(`document.getElementById('token').value = '` + p.token + `'; document.querySelector('form').requestSubmit()`)
	p.wait(`location.pathname === '/step'`)
	p.wait(`document.querySelector('[data-rested]')`)
	if at, err := eval[string](p, where); err != nil || at != "/step?c=dgx-h100:2" {
		t.Errorf("after logging in at %q, %v", at, err)
	}
	// The printed address logs in again where the page to log in is open, although nothing is loaded.
	p.run(`document.getElementById('logout').click()`)
	p.wait(`location.pathname === '/login' && document.getElementById('form')`)
	p.run(`location.hash = '` + p.token + `'`)
	p.wait(home)
	p.wait(`document.getElementById('logout').title.includes('logged in as tests')`)
	p.clean("login")
}
