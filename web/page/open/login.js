// Logs in: with the token after # in the address, or with the one that is typed.
const form = document.getElementById('form');
const field = document.getElementById('token');
const said = document.getElementById('said');

// The address to go to afterwards is the server's to say: a view of its own and nothing else.
const to = new URLSearchParams(location.search).get('to') || '/';

async function login(token) {
  said.textContent = '';
  try {
    const res = await fetch('/login', { method: 'POST', body: new URLSearchParams({ token, to }) });
    if (res.ok) {
      location.replace((await res.json()).to);
      return;
    }
    const doc = await res.json().catch(() => ({}));
    said.textContent = doc.error || `the server answered ${res.status}`;
  } catch {
    said.textContent = 'the server does not answer';
  }
  field.focus();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  login(field.value.trim());
});

// given logs in with the token of the address, where there is one.
function given() {
  const token = location.hash.slice(1);
  if (!token) return false;
  history.replaceState(null, '', location.pathname + location.search); // it stays in no history
  login(token).then(goOn); // it may have been used by this browser
  return true;
}

// goOn leaves the page where somebody is logged in already, such as who follows a link from elsewhere.
function goOn() {
  fetch(`/session?${new URLSearchParams({ to })}`).then((res) => res.json()).then((doc) => { if (doc.open) location.replace(doc.to); }).catch(() => {});
}

// The printed address may be opened where this page is open already, which loads nothing.
window.addEventListener('hashchange', given);
if (!given()) {
  field.focus();
  goOn();
}
