"use strict";
// Directed graphs and trees as SVG: layers by longest path, order within a layer by the mean position of the
// neighbours above and below.
demarc.layers_of = (count, edges) => {
  const next = Array.from({length: count}, () => []);
  edges.forEach(([from, to], i) => next[from].push([to, i]));
  const state = new Uint8Array(count), back = new Set(), order = [];
  const visit = (root) => {
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (top[1] === next[top[0]].length) { state[top[0]] = 2; order.push(top[0]); stack.pop(); continue; }
      const [to, i] = next[top[0]][top[1]++];
      if (state[to] === 1) back.add(i);
      else if (state[to] === 0) { state[to] = 1; stack.push([to, 0]); }
    }
  };
  const entered = new Uint8Array(count);
  for (const [from, to] of edges) if (from !== to) entered[to] = 1;
  for (let n = 0; n < count; ++n) if (!entered[n] && !state[n]) visit(n);
  for (let n = 0; n < count; ++n) if (!state[n]) visit(n);
  const layer = new Array(count).fill(0);
  for (const n of order.reverse()) for (const [to, i] of next[n]) if (!back.has(i)) layer[to] = Math.max(layer[to], layer[n] + 1);
  return {layer, back};
};

demarc.makers.graph = (block) => {
  const holder = demarc.element("div", {class: "graph"});
  demarc.when_visible(holder, () => {
    const SVG = "http://www.w3.org/2000/svg";
    const make = (tag, attributes, text) => {
      const made = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      if (text !== undefined) made.textContent = text;
      return made;
    };
    const {layer, back} = demarc.layers_of(block.nodes.length, block.edges);
    const boxes = block.nodes.map((node) => {
      const lines = node.label.split("\n");
      return {lines, width: Math.max(26, 7 * Math.max(...lines.map((line) => line.length)) + 14), height: 14 * lines.length + 10};
    });
    const rows = [];
    layer.forEach((depth, n) => { (rows[depth] = rows[depth] || []).push(n); });
    const around = block.nodes.map(() => []);
    block.edges.forEach(([from, to], i) => { if (!back.has(i)) { around[from].push(to); around[to].push(from); } });
    const gap = 16;
    // Places the row's nodes as near to their wishes as order and width allow.
    const place = (row, wish) => {
      row.sort((a, b) => wish[a] - wish[b]);
      let right = -Infinity;
      for (const n of row) {
        boxes[n].x = Math.max(wish[n], right + gap + boxes[n].width / 2);
        right = boxes[n].x + boxes[n].width / 2;
      }
      const shift = row.reduce((sum, n) => sum + wish[n] - boxes[n].x, 0) / row.length;
      for (const n of row) boxes[n].x += shift;
    };
    rows.forEach((row) => { const wish = []; row.forEach((n, i) => { wish[n] = i * 90; }); place(row, wish); });
    for (let round = 0; round < 10; ++round) {
      for (const row of round % 2 ? [...rows].reverse() : rows) {
        const wish = [];
        for (const n of row) {
          const near = around[n].filter((m) => round >= 8 || (round % 2 ? layer[m] > layer[n] : layer[m] < layer[n]));
          wish[n] = near.length ? near.reduce((sum, m) => sum + boxes[m].x, 0) / near.length : boxes[n].x;
        }
        place(row, wish);
      }
    }
    let top = 10;
    for (const row of rows) {
      const height = Math.max(...row.map((n) => boxes[n].height));
      for (const n of row) boxes[n].y = top + height / 2;
      top += height + 34;
    }
    const left = Math.min(...boxes.map((b) => b.x - b.width / 2)) - 30, right = Math.max(...boxes.map((b) => b.x + b.width / 2)) + 30;
    const whole = {x: left, y: 0, width: right - left, height: top - 14};
    const svg = make("svg", {role: "img", "aria-label": block.title, tabindex: "0"});
    const edges_layer = make("g", {}), nodes_layer = make("g", {});
    svg.append(edges_layer, nodes_layer);
    block.edges.forEach(([from, to, text], i) => {
      const a = boxes[from], b = boxes[to];
      const y1 = a.y + a.height / 2, y2 = b.y - b.height / 2;
      const bend = from === to || back.has(i)
        ? `M${a.x + a.width / 2},${a.y} C${a.x + a.width / 2 + 40},${a.y} ${b.x + b.width / 2 + 40},${b.y} ${b.x + b.width / 2},${b.y}`
        : `M${a.x},${y1} C${a.x},${(y1 + y2) / 2} ${b.x},${(y1 + y2) / 2} ${b.x},${y2}`;
      edges_layer.append(make("path", {d: bend, fill: "none", style: "stroke:var(--soft)", "stroke-width": 1.2, "stroke-dasharray": back.has(i) ? "4 3" : "none"}));
      if (!back.has(i)) edges_layer.append(make("path", {d: `M${b.x - 4},${y2 - 6} L${b.x},${y2} L${b.x + 4},${y2 - 6}`, fill: "none", style: "stroke:var(--soft)"}));
      if (text) edges_layer.append(make("text", {x: (a.x + b.x) / 2 + 4, y: (y1 + y2) / 2, class: "edge-label"}, text));
    });
    block.nodes.forEach((node, n) => {
      const b = boxes[n], group = make("g", {});
      group.append(make("rect", {x: b.x - b.width / 2, y: b.y - b.height / 2, width: b.width, height: b.height, rx: 5,
        style: `fill:${demarc.palette[node.group % demarc.palette.length]}22;stroke:${demarc.palette[node.group % demarc.palette.length]}`}));
      b.lines.forEach((line, i) => group.append(make("text", {x: b.x, y: b.y - b.height / 2 + 16 + 14 * i, "text-anchor": "middle"}, line)));
      if (node.detail) {
        group.addEventListener("pointermove", (event) => demarc.tip.show(node.detail, event.clientX, event.clientY));
        group.addEventListener("pointerleave", demarc.tip.hide);
      }
      nodes_layer.append(group);
    });

    let view = null;
    const fit = () => {
      const wide = holder.clientWidth || 600;
      const height = Math.max(120, Math.min(whole.height * Math.min(1.15, wide / whole.width), 560));
      svg.style.height = height + "px";
      // Letters stay readable: a graph wider than the window starts at its natural size, to be moved about.
      const scale = Math.max(Math.min(wide / whole.width, height / whole.height, 1.15), 0.62);
      view = {width: wide / scale, height: height / scale, x: 0, y: 0};
      view.x = whole.x + whole.width / 2 - view.width / 2;
      view.y = whole.height > view.height ? whole.y : whole.y + whole.height / 2 - view.height / 2;
      show();
    };
    const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    const zoom_by = (factor, x = 0.5, y = 0.5) => {
      view.x += x * view.width * (1 - 1 / factor); view.y += y * view.height * (1 - 1 / factor);
      view.width /= factor; view.height /= factor;
      show();
    };
    const where = (event) => {
      const area = svg.getBoundingClientRect();
      return {x: (event.clientX - area.left) / area.width, y: (event.clientY - area.top) / area.height};
    };
    let last = null;
    svg.addEventListener("pointerdown", (event) => { if (event.isTrusted) svg.setPointerCapture(event.pointerId); last = where(event); svg.focus({preventScroll: true}); });
    svg.addEventListener("pointermove", (event) => {
      if (!last) return;
      const now = where(event);
      view.x -= (now.x - last.x) * view.width; view.y -= (now.y - last.y) * view.height;
      last = now;
      show();
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { last = null; });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== svg) return;
      event.preventDefault();
      const {x, y} = where(event);
      zoom_by(Math.exp(-event.deltaY / 300), x, y);
    }, {passive: false});
    svg.style.touchAction = "pan-y";
    const button = (text, label, click) => demarc.element("button", {type: "button", "aria-label": label, click}, text);
    holder.append(demarc.element("div", {class: "tools"}, button("+", "Zoom in", () => zoom_by(1.5)), button("−", "Zoom out", () => zoom_by(1 / 1.5)),
      button("Fit", "Fit the graph", fit)), svg);
    fit();
    demarc.on_resize(holder, fit);
  });
  return demarc.figure(block, holder);
};
