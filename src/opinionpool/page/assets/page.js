// Sends each move of a control to the server on this machine, and takes over what it draws. Nothing is computed here.
"use strict";

const TEXT = new Set(["text", "search", "textarea"]);
const find = (id) => document.getElementById(id);

// Actions that wait for the answer to those before them; of one slider only the last place counts.
let waiting = [];
// The slider whose change goes on, until it loses the focus or is taken hold of anew: that is one step to undo.
let changing = "";
let busy = false;
let sequence = 0;
// The number of what is drawn, so that only what differs from it is sent.
let version = Number(document.body.dataset.version);
let ended = false;

function move(entry) {
  const last = waiting[waiting.length - 1];
  const same = last && !entry.begins && ["do", "expert", "class"].every((key) => last[key] === entry[key]);
  if (same) entry.begins = waiting.pop().begins;
  waiting.push(entry);
  if (!busy) send();
}

async function send() {
  if (!waiting.length || ended) return;
  const moves = waiting;
  waiting = [];
  busy = true;
  document.documentElement.dataset.busy = "true";
  try {
    const response = await fetch("move", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ version, moves }),
    });
    if (response.status === 410) return location.reload();
    if (!response.ok) throw new Error(await response.text());
    draw(await response.json(), moves);
  } catch (error) {
    trouble(error instanceof TypeError ? "The server on this machine has ended; start opinionpool open again." : error.message);
  } finally {
    busy = false;
    delete document.documentElement.dataset.busy;
  }
  if (waiting.length) send();
}

function trouble(message) {
  const line = document.createElement("p");
  line.textContent = message;
  find("trouble").replaceChildren(line);
}

function draw(drawn, moves) {
  version = drawn.version;
  const wrong = drawn.wrong.field && find(drawn.wrong.field);
  const typed = wrong ? wrong.value : "";
  const travelled = moves.some((entry) => ["undo", "redo", "take", "panel", "event", "blank"].includes(entry.do));
  const switched = moves.some((entry) => ["view", "event"].includes(entry.do));
  unmark();
  for (const [id, html] of Object.entries(drawn.regions)) morph(find(id), html, travelled);
  if (wrong && wrong.isConnected) mark(wrong, typed, drawn.wrong.text);
  find("live").textContent = drawn.live;
  document.title = `${questionText()} – opinionpool`;
  if (drawn.keep) trouble(drawn.keep);
  // What was done here, such as adding experts, is done once it has been drawn.
  for (const entry of moves) {
    if (entry.do === "add" && !drawn.wrong.text) find("new").value = "";
    if (entry.do === "take") dismiss();
  }
  if (switched) {
    window.scrollTo({ top: 0 });
    focusHeading();
  }
  grow();
  later();
}

// Says at a field what is wrong with what was typed there, which stays to be corrected.
function mark(field, typed, text) {
  const why = document.createElement("p");
  why.id = "wrong";
  why.className = "wrong";
  why.setAttribute("role", "alert");
  why.textContent = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  field.value = typed;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", "wrong");
  (field.closest(".control, form, h1") || field).append(why);
  const folded = field.closest("details:not([open])");
  if (folded) folded.open = true;
  find("trouble").replaceChildren();
}

function unmark() {
  if (find("wrong")) find("wrong").remove();
  for (const field of document.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

function questionText() {
  const field = find("question");
  return field ? field.value : document.querySelector("h1 bdi").textContent;
}

function focusHeading() {
  const heading = document.querySelector("#work h2");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// Changes what differs and keeps the rest, so that focus, open details and a drag survive.
function morph(target, html, force) {
  const template = document.createElement("template");
  template.innerHTML = html;
  morphChildren(target, template.content, force);
}

function morphChildren(old, fresh, force) {
  const named = new Map();
  for (const child of old.children) if (child.id) named.set(child.id, child);
  let place = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    let match = place;
    if (node.id && named.has(node.id)) {
      match = named.get(node.id);
      if (match !== place) old.insertBefore(match, place);
      else place = place.nextSibling;
    } else if (place && !(place.id && place.id !== node.id) && alike(place, node)) {
      place = place.nextSibling;
    } else {
      old.insertBefore(node, place);
      continue;
    }
    if (!alike(match, node)) match.replaceWith(node);
    else morphNode(match, node, force);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id || "") === (other.id || "");
}

function morphNode(old, fresh, force) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (fresh.dataset && fresh.dataset.later) {
    old.dataset.stale = "true";
    return;
  }
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  if (old.nodeName === "TEXTAREA") {
    if (old.id !== "new" && (force || old !== document.activeElement)) old.value = fresh.value;
    return;
  }
  morphChildren(old, fresh, force);
  if (old.nodeName === "INPUT" && old.type !== "file") {
    const typing = old === document.activeElement && (TEXT.has(old.type) || old.type === "number" || old.matches(":active"));
    if (force || !typing) old.value = fresh.value;
  } else if (old.nodeName === "SELECT") {
    old.value = fresh.value;
  }
}

// Parts that take longer than a move may.
async function later() {
  const mine = ++sequence;
  for (const part of document.querySelectorAll("[data-later]")) {
    part.setAttribute("aria-busy", "true");
    let again = true;
    while (again && mine === sequence && part.isConnected && !ended) {
      try {
        const response = await fetch(`later/${part.dataset.later}`);
        if (!response.ok) return;
        const drawn = await response.json();
        if (mine !== sequence || !part.isConnected) return;
        const template = document.createElement("template");
        template.innerHTML = drawn.html;
        morphChildren(part, template.content, false);
        again = drawn.again;
      } catch {
        return;
      }
      if (again) await new Promise((done) => setTimeout(done, 700));
    }
    part.removeAttribute("aria-busy");
  }
}

function entryOf(control, value, begins) {
  const entry = { do: control.dataset.do, value, begins, field: control.id };
  for (const key of ["expert", "class"]) if (control.dataset[key] !== undefined) entry[key] = Number(control.dataset[key]);
  if (control.dataset.unit) entry.unit = control.dataset.unit;
  return entry;
}

document.addEventListener("input", (event) => {
  const control = event.target;
  if (control.type === "range" && control.dataset.do) {
    move(entryOf(control, control.value, changing !== control.id));
    changing = control.id;
  }
  if (control.type === "search") move(entryOf(control, control.value, true));
  if (control.nodeName === "TEXTAREA") grow();
});

document.addEventListener("change", (event) => {
  const control = event.target;
  if (control.dataset.load) return load(control);
  if (control.dataset.do && control.nodeName !== "BUTTON" && !["search", "range"].includes(control.type)) {
    move(entryOf(control, control.value, true));
  }
});

for (const kind of ["focusout", "pointerdown"]) document.addEventListener(kind, () => (changing = ""));

document.addEventListener("click", (event) => {
  const control = event.target.closest("button");
  if (!control || control.disabled) return;
  if (control.dataset.copy) return copy(control);
  if (control.dataset.do === "dismiss") return dismiss();
  if (control.dataset.do) move(entryOf(control, control.dataset.value, true));
});

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const source = find(event.target.dataset.add);
  move({ do: "add", value: source.value, begins: true, field: source.id });
});

document.addEventListener("keydown", (event) => {
  const control = event.target;
  const typing = control.nodeName === "TEXTAREA" || (control.nodeName === "INPUT" && control.type !== "range");
  if (event.key === "Enter" && control.id === "question") {
    event.preventDefault();
    control.blur();
    control.focus();
  }
  if (event.key === "Enter" && !event.shiftKey && control.id === "new" && !control.value.includes("\n")) {
    event.preventDefault();
    control.form.requestSubmit();
  }
  if (!(event.ctrlKey || event.metaKey) || typing) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  move({ do: key === "y" || event.shiftKey ? "redo" : "undo", begins: true });
});

async function load(control) {
  const file = control.files[0];
  if (!file) return;
  if (file.size > 1000000) trouble("A panel file has at most 1,000,000 bytes, and this has more.");
  else move({ do: control.dataset.load, value: await file.text(), begins: true, field: control.id });
  control.value = "";
}

async function copy(control) {
  const text = find(control.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
    find("live").textContent = "copied";
    control.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(find(control.dataset.copy));
  }
}

function dismiss() {
  const part = find("kept");
  if (part) part.remove();
}

function grow() {
  for (const area of document.querySelectorAll("textarea")) {
    area.rows = 1;
    const line = parseFloat(getComputedStyle(area).lineHeight) || 24;
    area.rows = Math.min(8, Math.max(1, Math.round((area.scrollHeight - 8) / line)));
  }
}

// The server ends a minute after the last of these was closed.
const alive = new EventSource("alive");
alive.addEventListener("end", () => {
  ended = true;
  alive.close();
  trouble("The server on this machine has ended; what was not handed over or kept is lost.");
});

addEventListener("resize", grow);
grow();
later();
