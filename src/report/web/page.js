"use strict";
// Builds the page from the JSON it carries. A block of kind K is drawn by demarc.makers[K](block), which returns an
// element; figures register their drawing with demarc.when_visible and demarc.on_theme.
const demarc = {
  makers: {},
  theme_listeners: [],
  runs: new Map(),  // by key: what a click on a cell shows
  palette: ["#2f7ed8", "#e0712c", "#2a9d6f", "#c23b80", "#8a63d2", "#b08a00", "#17a2b8", "#8b6b4f", "#7f8c8d", "#d64545",
    "#5b9bd5", "#a05195", "#6b8e23", "#c9703e"],
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

// A number of at most `digits` digits. Whole numbers are counts and keep all of theirs, as the whole part of any number does.
demarc.number = (value, digits = 3) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(digits - 1);
  const whole_digits = size < 1 ? 0 : Math.floor(Math.log10(size)) + 1;
  const rounded = Number.isInteger(value) ? String(value) : whole_digits >= digits ? value.toFixed(0) : String(Number(value.toPrecision(digits)));
  const [whole, rest] = rounded.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return rest === undefined ? spaced : spaced + "." + rest;
};

// A place on an axis: neighbours a step apart must differ.
demarc.place = (value) => demarc.number(value, 6);

demarc.with_unit = (value, unit) => unit ? demarc.number(value) + "\u00a0" + unit : demarc.number(value);

// Paper is white and narrow whatever the screen is: figures are drawn for it before printing, and as they were after it. How
// the page was made is printed open.
{
  let before = null;
  addEventListener("beforeprint", () => {
    if (before) return;
    const root = document.documentElement, folded = [...document.querySelectorAll("details.context:not([open])")];
    before = {theme: root.dataset.theme, folded};
    root.dataset.theme = "light";
    root.dataset.paper = "yes";
    for (const part of folded) part.open = true;
    demarc.theme_changed();
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    if (before.theme) document.documentElement.dataset.theme = before.theme; else delete document.documentElement.dataset.theme;
    delete document.documentElement.dataset.paper;
    for (const part of before.folded) part.open = false;
    before = null;
    demarc.theme_changed();
  });
}

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

// Calls `draw` soon after the element's size changed; inside the observer it could change the size once more.
demarc.on_resize = (target, draw) => {
  let pending = false;
  new ResizeObserver(() => {
    if (pending) return;
    pending = true;
    setTimeout(() => { pending = false; draw(); });
  }).observe(target);
};

demarc.figure = (block, ...content) => demarc.element("figure", {"aria-label": block.title || block.caption},
  block.title ? demarc.element("div", {class: "title"}, block.title) : null, ...content,
  block.caption ? demarc.element("figcaption", {}, ...demarc.inline(block.caption)) : null);

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

demarc.makers.key_figures = (block) => {
  const line = (kind, text) => text ? demarc.element("div", {class: kind.trim()}, ...demarc.inline(text)) : null;
  return demarc.element("div", {class: "figures"}, ...block.figures.map((figure) =>
    demarc.element("div", {}, line("name", figure.name), line("meaning", figure.meaning), line("value " + figure.tone, figure.value),
      line("note", figure.note), line("value second " + (figure.second_tone || ""), figure.second), line("note", figure.second_note))));
};

demarc.makers.table = (block) => {
  const body = demarc.element("tbody");
  const lines = block.rows.map((row) => ({row, line: demarc.element("tr", {}, ...row.map((cell, c) =>
    demarc.element("td", {class: [block.columns[c].right ? "right" : "", cell.t.length > 60 ? "long" : "", cell.c || ""].join(" ").trim()}, ...demarc.opening(cell.r, demarc.inline(cell.t)),
      cell.d ? demarc.element("div", {class: "meaning"}, ...demarc.inline(cell.d)) : null)))}));
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
  const csv = () => [block.columns.map((column) => column.name), ...block.rows.map((row) => row.map((cell) => cell.n === undefined ? cell.t : String(cell.n)))]
    .map((line) => line.map((text) => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text).join(",")).join("\n") + "\n";
  return demarc.element("figure", {"aria-label": block.caption}, ...demarc.scroller(
    demarc.element("table", {}, demarc.element("thead", {}, demarc.element("tr", {}, ...heads)), body)),
    demarc.element("div", {class: "table-tools"}, demarc.save_button("CSV", "table.csv", csv)),
    block.caption ? demarc.element("figcaption", {}, ...demarc.inline(block.caption)) : null);
};

// A button that saves what `text` gives as a file.
demarc.save_button = (label, file, text) => demarc.element("button", {type: "button", click: () => {
  const address = URL.createObjectURL(new Blob([text()], {type: "text/csv"}));
  demarc.element("a", {href: address, download: file}).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}}, label);

// A command, and a button that copies it.
demarc.command_line = (command) => {
  const copy = demarc.element("button", {type: "button", click: () => navigator.clipboard.writeText(command).then(() => { copy.textContent = "Copied"; })}, "Copy");
  return demarc.element("div", {class: "command"}, demarc.element("code", {}, command), navigator.clipboard ? copy : null);
};

// Content that opens the runs of `key`, if there are any.
demarc.opening = (key, content) => demarc.runs.has(key) ?
  [demarc.element("button", {type: "button", class: "opens", click: () => demarc.open_runs(key)}, ...content)] : content;

demarc.open_runs = (key) => {
  const {plot, command} = demarc.runs.get(key);
  const rows = plot.samples.map((sample) => [{t: sample.name}, {t: String(sample.count), n: sample.count},
    ...[0, 3, 6].map((k) => ({t: demarc.number(sample.box[k]), n: sample.box[k]}))]);
  const columns = ["runs of", "runs", "least, us", "median, us", "worst, us"].map((name, i) => ({name, right: i > 0}));
  const close = demarc.element("button", {type: "button", click: () => dialog.close()}, "Close");
  const dialog = demarc.element("dialog", {class: "runs", "aria-label": plot.title, close: () => dialog.remove()},
    demarc.element("div", {class: "tools"}, demarc.element("b", {}, plot.title), close),
    demarc.makers.box({...plot, title: ""}), demarc.makers.table({caption: "", columns, rows}),
    demarc.element("p", {}, "To repeat them:"), demarc.command_line(command));
  document.body.append(dialog);
  dialog.showModal();
};

// A table that may be wider than the window: it scrolls sideways, and a line above says so while there is more to see.
demarc.scroller = (table) => {
  const hint = demarc.element("div", {class: "hint"}, "More columns: scroll sideways \u2192");
  const box = demarc.element("div", {class: "scroll", tabindex: "0"}, table);
  const look = () => {
    const more = box.scrollWidth > box.clientWidth + 1;
    hint.hidden = !more;
    box.classList.toggle("cut", more && box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  hint.hidden = true;
  box.addEventListener("scroll", look);
  demarc.on_resize(box, look);
  return [hint, box];
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
  const links = demarc.element("div", {class: "links"});
  const contents = demarc.element("details", {class: "contents"}, demarc.element("summary", {}, "Contents"), links);
  const bar = demarc.element("nav", {"aria-label": "Contents"}, contents, demarc.theme_button());
  const main = demarc.element("main");
  document.body.append(demarc.element("header", {class: "top"}, demarc.element("div", {}, demarc.element("h1", {}, data.title),
    data.subtitle ? demarc.element("p", {class: "subtitle"}, data.subtitle) : null)), bar, main);
  const context = data.blocks.find((block) => block.kind === "context");
  const command = context && context.rows.find(([name]) => name === "command");
  if (command) document.querySelector("header.top").append(demarc.command_line(command[1]));
  const open = [main];
  for (const block of data.blocks) if (block.kind === "runs") demarc.runs.set(block.key, block);
  const list = (target, text, link) => {
    target.id = demarc.anchor(text);
    if (link) links.append(demarc.element("a", {href: "#" + target.id}, text));
  };
  for (const block of data.blocks) {
    const parent = open[open.length - 1];
    if (block.kind === "runs") continue;
    if (block.kind === "csv" || block.kind === "link") {
      bar.insertBefore(block.kind === "csv" ? demarc.save_button("All data as CSV", block.file, () => block.text)
        : demarc.element("a", {class: "page", href: encodeURI(block.file)}, block.text), bar.lastElementChild);
      continue;
    }
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
      const beside = made.classList.contains("square") && parent.lastElementChild;
      if (beside && beside.classList.contains("square")) {
        const row = demarc.element("div", {class: "beside"});
        beside.replaceWith(row);
        row.append(beside, made);
      } else {
        parent.append(made);
      }
      if (block.kind === "context") list(made, "How this was made", open.length === 1);
      if (block.kind === "heading") list(made, block.text, block.level <= 2 && open.length === 1);
    }
  }
  if (links.children.length < 2) contents.remove();
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
  // The browser's notice that it draws what an observer changed a frame later: nothing is lost.
  if (event.message.startsWith("ResizeObserver loop")) return;
  document.body.prepend(demarc.element("div", {class: "fault"}, "This page met an error: " + event.message));
});
