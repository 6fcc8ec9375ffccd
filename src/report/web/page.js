"use strict";
// Builds the page from the JSON it carries. A block of kind K is drawn by demarc.makers[K](block), which returns an
// element; figures register their drawing with demarc.when_visible and demarc.on_theme.
const demarc = {
  makers: {},
  theme_listeners: [],
  palette: ["#2f7ed8", "#e0712c", "#2a9d6f", "#c23b80", "#8a63d2", "#b08a00", "#17a2b8", "#8b6b4f", "#7f8c8d", "#d64545"],
};

// element("div", {class: "x"}, "text", child): attributes that are functions become listeners.
demarc.element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== "") made.setAttribute(name, value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
};

demarc.color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

demarc.is_dark = () => {
  const forced = document.documentElement.dataset.theme;
  return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

demarc.on_theme = (listener) => demarc.theme_listeners.push(listener);
demarc.theme_changed = () => { for (const listener of demarc.theme_listeners) listener(); };

// {u32: "..."}, {f32: "..."} or {f64: "..."}: base64 of a little-endian array.
demarc.unpack = (packed) => {
  const [kind, text] = Object.entries(packed)[0];
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return new {u32: Uint32Array, f32: Float32Array, f64: Float64Array}[kind](bytes.buffer);
};

demarc.number = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-4)) return value.toExponential(3);
  const rounded = Number.isInteger(value) ? value : Number(value.toPrecision(5));
  const [whole, rest] = String(rounded).split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return rest === undefined ? spaced : spaced + "." + rest;
};

// Calls draw once the element comes into view, or before printing.
demarc.when_visible = (() => {
  const waiting = new Map();
  const run = (target) => {
    const draw = waiting.get(target);
    if (!draw) return;
    waiting.delete(target);
    observer.unobserve(target);
    draw();
  };
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) run(entry.target);
  }, {rootMargin: "400px"});
  addEventListener("beforeprint", () => { for (const target of [...waiting.keys()]) run(target); });
  return (target, draw) => { waiting.set(target, draw); observer.observe(target); };
})();

demarc.figure = (block, ...content) => demarc.element("figure", {"aria-label": block.title || block.caption},
  block.title ? demarc.element("div", {class: "title"}, block.title) : null, ...content,
  block.caption ? demarc.element("figcaption", {}, block.caption) : null);

demarc.tip = (() => {
  let box = null;
  return {
    show(text, x, y) {
      if (!box) { box = demarc.element("div", {class: "tip"}); document.body.append(box); }
      box.textContent = text;
      box.hidden = false;
      const width = box.offsetWidth, height = box.offsetHeight;
      box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
      box.style.top = (y + 16 + height > innerHeight ? y - height - 10 : y + 16) + "px";
    },
    hide() { if (box) box.hidden = true; },
  };
})();

demarc.anchor = (text) => {
  const base = "s-" + text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  let name = base;
  for (let i = 2; document.getElementById(name); ++i) name = base + "-" + i;
  return name;
};

// Text with `code` spans.
demarc.inline = (text) => text.split("`").map((part, i) => i % 2 ? demarc.element("code", {}, part) : part);

demarc.makers.heading = (block) => demarc.element("h" + Math.min(4, Math.max(2, block.level)), {}, block.text);

demarc.makers.prose = (block) => {
  const box = demarc.element("div", {class: "prose"});
  for (const paragraph of block.text.split(/\n\s*\n/)) {
    let words = [], list = null;
    const flush = () => { if (words.length) box.append(demarc.element("p", {}, ...demarc.inline(words.join(" ")))); words = []; };
    for (const line of paragraph.split("\n")) {
      if (line.startsWith("- ")) {
        flush();
        if (!list) { list = demarc.element("ul"); box.append(list); }
        list.append(demarc.element("li", {}, ...demarc.inline(line.slice(2))));
      } else if (line.trim()) { words.push(line.trim()); }
    }
    flush();
  }
  return box;
};

demarc.makers.key_figures = (block) => demarc.element("div", {class: "figures"}, ...block.figures.map((figure) =>
  demarc.element("div", {}, demarc.element("div", {class: "name"}, figure.name),
    demarc.element("div", {class: ("value " + figure.tone).trim()}, figure.value),
    figure.note ? demarc.element("div", {class: "note"}, figure.note) : null)));

demarc.makers.table = (block) => {
  const body = demarc.element("tbody");
  const lines = block.rows.map((row) => ({row, line: demarc.element("tr", {}, ...row.map((cell, c) =>
    demarc.element("td", {class: [block.columns[c].right ? "right" : "", cell.t.length > 60 ? "long" : "", cell.c || ""].join(" ").trim()}, ...demarc.inline(cell.t))))}));
  body.append(...lines.map((entry) => entry.line));
  const heads = block.columns.map((column, c) => {
    const head = demarc.element("th", {scope: "col", class: column.right ? "right" : ""});
    head.append(demarc.element("button", {type: "button", click: () => sort(c)}, column.name));
    return head;
  });
  const compare = (a, b) => {
    if (a.n !== undefined && b.n !== undefined) return a.n - b.n;
    if (a.n !== undefined || b.n !== undefined) return a.n !== undefined ? -1 : 1;
    return a.t.localeCompare(b.t, "en", {numeric: true});
  };
  const sort = (c) => {
    const down = heads[c].getAttribute("aria-sort") === "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[c].setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...lines].sort((a, b) => (down ? -1 : 1) * compare(a.row[c], b.row[c]));
    body.replaceChildren(...sorted.map((entry) => entry.line));
  };
  return demarc.element("figure", {"aria-label": block.caption}, demarc.element("div", {class: "scroll", tabindex: "0"},
    demarc.element("table", {}, demarc.element("thead", {}, demarc.element("tr", {}, ...heads)), body)),
    block.caption ? demarc.element("figcaption", {}, block.caption) : null);
};

demarc.makers.svg = (block) => demarc.element("figure", {}, demarc.element("img", {class: "drawing", alt: block.caption,
  src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(block.svg)}),
  block.caption ? demarc.element("figcaption", {}, block.caption) : null);

demarc.makers.code = (block) => demarc.element("figure", {}, demarc.element("pre", {tabindex: "0"}, block.text),
  block.caption ? demarc.element("figcaption", {}, block.caption) : null);

demarc.makers.context = (block) => demarc.element("details", {class: "context"},
  demarc.element("summary", {}, "How this was made"),
  demarc.element("dl", {}, ...block.rows.flatMap(([name, value]) =>
    [demarc.element("dt", {}, name), demarc.element("dd", {}, name === "command" ? demarc.element("code", {}, value) : value)])));

demarc.theme_button = () => {
  const names = {"": "Theme: system", light: "Theme: light", dark: "Theme: dark"};
  const button = demarc.element("button", {type: "button", click: () => {
    const order = ["", "light", "dark"];
    const next = order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % 3];
    if (next) document.documentElement.dataset.theme = next; else delete document.documentElement.dataset.theme;
    button.textContent = names[next];
    demarc.theme_changed();
  }}, names[""]);
  return button;
};

demarc.start = () => {
  const data = JSON.parse(document.getElementById("demarc-data").textContent);
  const contents = demarc.element("nav", {class: "contents", "aria-label": "Contents"});
  const main = demarc.element("main");
  document.body.append(demarc.element("header", {class: "top"}, demarc.element("div", {}, demarc.element("h1", {}, data.title),
    data.subtitle ? demarc.element("p", {class: "subtitle"}, data.subtitle) : null), demarc.theme_button()), contents, main);
  const open = [main];
  const list = (target, text, link) => {
    target.id = demarc.anchor(text);
    if (link) contents.append(demarc.element("a", {href: "#" + target.id}, text));
  };
  for (const block of data.blocks) {
    const parent = open[open.length - 1];
    if (block.kind === "begin") {
      const part = demarc.element("details", {class: "part"}, demarc.element("summary", {}, block.title));
      part.open = !block.folded;
      parent.append(part);
      list(part, block.title, open.length === 1);
      open.push(part);
    } else if (block.kind === "end") {
      if (open.length > 1) open.pop();
    } else {
      const made = demarc.makers[block.kind](block);
      parent.append(made);
      if (block.kind === "heading") list(made, block.text, block.level <= 2 && open.length === 1);
    }
  }
  if (contents.children.length < 2) contents.remove();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", demarc.theme_changed);
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
  document.documentElement.dataset.ready = "yes";
};

addEventListener("error", (event) => {
  document.body.prepend(demarc.element("div", {class: "fault"}, "This page met an error: " + event.message));
});
