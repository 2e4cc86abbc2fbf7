// Finds sections that have all words, those with words in their titles first.
const box = document.getElementById("search");
const found = document.getElementById("found");
const lower = sections.map((s) => ({ title: (s.p + " " + s.t).toLowerCase(), text: s.x.toLowerCase() }));

function find(question) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const hits = [];
  lower.forEach((l, i) => {
    let score = 0;
    for (const w of words) {
      const title = l.title.includes(w), text = l.text.includes(w);
      if (!title && !text) return;
      score += (title ? 10 : 0) + Math.min(l.text.split(w).length - 1, 5);
    }
    hits.push({ section: sections[i], text: l.text, score });
  });
  return hits.sort((a, b) => b.score - a.score).slice(0, 20).map((h) => ({ ...h, words }));
}

// excerpt is the text around the first word, which is marked.
function excerpt(hit) {
  const p = document.createElement("span");
  const at = Math.max(0, hit.text.indexOf(hit.words[0]));
  const from = Math.max(0, at - 60), to = Math.min(hit.section.x.length, at + 140);
  const mark = document.createElement("mark");
  mark.textContent = hit.section.x.slice(at, at + hit.words[0].length);
  p.append(from > 0 ? "… " : "", hit.section.x.slice(from, at), mark, hit.section.x.slice(at + hit.words[0].length, to), " …");
  return p;
}

function show() {
  const hits = find(box.value);
  found.replaceChildren();
  found.hidden = box.value.trim() === "";
  if (!found.hidden && hits.length === 0) found.append("Nothing found.");
  for (const h of hits) {
    const p = document.createElement("p"), a = document.createElement("a"), where = document.createElement("span");
    a.href = up + h.section.u;
    a.textContent = h.section.t;
    where.className = "where";
    where.textContent = " " + h.section.p;
    p.append(a, where, document.createElement("br"), excerpt(h));
    found.append(p);
  }
}

box.addEventListener("input", show);
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== box) { e.preventDefault(); box.focus(); }
  if (e.key === "Escape") { box.value = ""; show(); }
});
