// Files that are dragged onto the page, also those in folders.

// droppable lets an element take them.
export function droppable(node, take) {
  for (const kind of ['dragenter', 'dragover']) node.addEventListener(kind, (e) => { e.preventDefault(); node.classList.add('over'); });
  for (const kind of ['dragleave', 'drop']) node.addEventListener(kind, () => node.classList.remove('over'));
  node.addEventListener('drop', (e) => { e.preventDefault(); dropped(e.dataTransfer).then(take); });
  return node;
}

// dropped reads the entries at once: the browser empties their list after the event.
async function dropped(transfer) {
  const entries = [...transfer.items].map((x) => x.webkitGetAsEntry()).filter(Boolean);
  return entries.length ? (await Promise.all(entries.map((e) => within(e)))).flat() : [...transfer.files];
}

// within are the files of an entry. Below a folder their names say where they lie: a node's folder names the node.
async function within(entry, folder = '') {
  if (entry.isFile) {
    const file = await new Promise((done, fail) => entry.file(done, fail));
    return [folder ? new File([file], `${folder}-${file.name}`) : file];
  }
  const reader = entry.createReader(), list = [];
  for (let some = [0]; some.length;) { // a reader gives a hundred at a time
    some = await new Promise((done, fail) => reader.readEntries(done, fail));
    list.push(...some);
  }
  return (await Promise.all(list.map((e) => within(e, e.isFile ? folder : `${folder && `${folder}-`}${e.name}`)))).flat();
}
