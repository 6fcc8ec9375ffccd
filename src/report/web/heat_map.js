"use strict";
// Heat maps. Small ones are tables whose cells are coloured, several of them on one scale. Large ones are drawn on a canvas:
// the cells in view are binned to screen pixels (the largest value of a pixel wins), so the cost of a frame is one pass over
// the cells, however many there are.
demarc.scale_stops = {
  light: [[255, 247, 220], [253, 204, 120], [244, 130, 60], [203, 50, 74], [110, 20, 100], [35, 8, 60]],
  dark: [[40, 34, 92], [92, 40, 130], [170, 50, 120], [228, 92, 82], [250, 165, 70], [252, 240, 160]],
  // Of ratios: below the middle, about it, above it.
  light_diverging: [[33, 102, 172], [120, 180, 216], [247, 247, 247], [244, 165, 130], [178, 24, 43]],
  dark_diverging: [[120, 190, 255], [50, 95, 145], [38, 46, 57], [145, 70, 60], [255, 145, 120]],
};

// The least round factor that is not below `factor`: where a scale of ratios ends.
demarc.round_factor = (factor) => [1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10].find((round) => round >= factor - 1e-9) || Math.pow(10, Math.ceil(Math.log10(factor)));

// The one scale of all values given: ends, where a value lies between them (share), and its colour. An end that the page set
// stands for all values beyond it. Ratios have a middle, and as far below it as above.
demarc.scale_of = (block, lists) => {
  let least = Infinity, most = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (block.log && value <= 0) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
  }
  if (least > most) { least = 0; most = 1; }
  const scale = {name: block.value_name + (block.log ? " (log)" : ""), middle: block.middle, open: {low: block.low !== null, high: block.high !== null}};
  if (block.middle !== null) {
    const factor = block.high !== null ? block.high / block.middle : demarc.round_factor(Math.max(most / block.middle, least > 0 ? block.middle / least : 1, 1.01));
    scale.low = block.middle / factor;
    scale.high = block.middle * factor;
    scale.open.low = scale.open.high;
    scale.share = (value) => 0.5 + 0.5 * Math.log(Math.max(value, scale.low) / block.middle) / Math.log(factor);
  } else {
    scale.low = block.low !== null ? block.low : block.log ? least : Math.min(0, least);
    scale.high = block.high !== null ? block.high : most;
    const {low, high} = scale;
    scale.share = (value) => !(high > low) ? 1 : block.log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
  }
  scale.color = (share) => {
    const stops = demarc.scale_stops[(demarc.is_dark() ? "dark" : "light") + (block.middle !== null ? "_diverging" : "")];
    const position = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const i = Math.min(stops.length - 2, Math.floor(position));
    return stops[i].map((from, k) => Math.round(from + (stops[i + 1][k] - from) * (position - i)));
  };
  return scale;
};

// Black or white, whichever is read more easily on the colour.
demarc.ink_on = (color) => {
  const [r, g, b] = color.map((part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : Math.pow((part / 255 + 0.055) / 1.055, 2.4));
  const bright = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (bright + 0.05) / 0.05 > 1.05 / (bright + 0.05) ? "#000" : "#fff";
};

// The scale's legend: its colours, what they stand for, and its ends.
demarc.scale_legend = (scale) => {
  const bar = demarc.element("div", {class: "bar"});
  const paint = () => {
    const stops = [];
    for (let i = 0; i <= 20; ++i) stops.push(`rgb(${scale.color(i / 20).join(",")})`);
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  };
  paint();
  demarc.on_theme(paint);
  const end = (text) => demarc.element("span", {}, text);
  return demarc.element("div", {class: "scale"}, scale.name ? demarc.element("div", {class: "of"}, scale.name) : null, bar,
    demarc.element("div", {class: "ends"}, end((scale.open.low ? "\u2264\u202f" : "") + demarc.number(scale.low)),
      scale.middle !== null ? end(demarc.number(scale.middle)) : null,
      end((scale.open.high ? "\u2265\u202f" : "") + demarc.number(scale.high))));
};

demarc.cell_words = (block, row, column, value) => {
  const name = (labels, index) => labels.length ? labels[index] : String(index);
  const said = value === undefined ? "no value" : demarc.number(value) + (block.value_name ? " " + block.value_name : "");
  return `${block.row_name} ${name(block.row_labels, row)}, ${block.column_name} ${name(block.column_labels, column)}: ${said}`;
};

// A map with nothing in it is a sentence.
demarc.empty_map = (block) => demarc.element("p", {class: "empty"}, demarc.element("b", {}, block.title ? block.title + ": " : ""), [block.empty, block.caption].filter(Boolean).join(" "));

// A map of few cells, their values written into them.
demarc.cell_table = (block, values, scale) => {
  const at = new Map();
  const row = demarc.unpack(block.r), column = demarc.unpack(block.c);
  for (let i = 0; i < values.length; ++i) at.set(row[i] * block.columns + column[i], values[i]);
  const filled = [];
  const rows = [];
  for (let r = 0; r < block.rows; ++r) {
    const cells = [demarc.element("th", {scope: "row"}, block.row_labels[r] || String(r))];
    for (let c = 0; c < block.columns; ++c) {
      const value = at.get(r * block.columns + c);
      const words = demarc.cell_words(block, r, c, value);
      const cell = demarc.element("td", {"aria-label": words, pointermove: (event) => demarc.tip.show(words, event.clientX, event.clientY), pointerleave: demarc.tip.hide},
        ...(value === undefined ? ["\u2013"] : demarc.opening([block.opens, block.row_labels[r], block.column_labels[c]].join("|"), [value.toFixed(block.decimals)])));
      if (value !== undefined) filled.push([cell, value]);
      cells.push(cell);
    }
    rows.push(demarc.element("tr", {}, ...cells));
  }
  const paint = () => {
    for (const [cell, value] of filled) {
      const color = scale.color(scale.share(value));
      cell.style.background = `rgb(${color.join(",")})`;
      cell.style.color = demarc.ink_on(color);
    }
  };
  paint();
  demarc.on_theme(paint);
  const heads = [demarc.element("th", {}, `${block.row_name} \u2193 ${block.column_name} \u2192`)];
  for (let c = 0; c < block.columns; ++c) heads.push(demarc.element("th", {scope: "col"}, block.column_labels[c] || String(c)));
  return demarc.scroller(demarc.element("table", {class: "cells", "aria-label": block.title}, demarc.element("thead", {}, demarc.element("tr", {}, ...heads)), demarc.element("tbody", {}, ...rows)));
};

// Maps beside each other on one scale, that of the first.
demarc.makers.heat_maps = (block) => {
  const full = block.maps.filter((map) => map.rows && map.columns);
  const values = full.map((map) => demarc.unpack(map.v));
  if (!full.length) return demarc.figure(block);
  const grid = demarc.element("div", {class: "multiples"});
  const longest = (labels) => Math.max(0, ...labels.map((text) => text.length));
  const least = (map) => 8 * Math.max(longest(map.row_labels), map.row_name.length + map.column_name.length + 3) + 20 + map.columns * 50;
  grid.style.setProperty("--least", Math.max(...full.map(least)) + "px");
  const scale = demarc.scale_of(full[0], values);
  full.forEach((map, i) => grid.append(demarc.element("div", {class: "panel"}, demarc.element("div", {class: "title"}, map.title), ...demarc.cell_table(map, values[i], scale))));
  return demarc.figure(block, grid, demarc.scale_legend(scale));
};

demarc.makers.heat_map = (block) => {
  const packed = demarc.unpack(block.v);
  if (!packed.length) return demarc.empty_map(block);
  if (block.decimals !== null && block.rows * block.columns <= 600) {
    const scale = demarc.scale_of(block, [packed]);
    return demarc.figure(block, ...demarc.cell_table(block, packed, scale), demarc.scale_legend(scale));
  }
  const scale = demarc.scale_of(block, [packed]);
  const square = block.symmetric;
  const canvas = demarc.element("canvas", {tabindex: "0", role: "img", "aria-label": block.title});
  const readout = demarc.element("span", {class: "readout"});
  const button = (text, label, click) => demarc.element("button", {type: "button", "aria-label": label, click}, text);
  const tools = demarc.element("div", {class: "tools"}, button("+", "Zoom in", () => zoom_by(2)),
    button("−", "Zoom out", () => zoom_by(0.5)), button("Whole map", "Show the whole map", () => reset()), readout);
  const box = demarc.element("div", {class: "heat"}, canvas);
  const margin = {left: 64, top: 6, right: 12, bottom: 40};
  let cells = null;  // {row, column, value}
  let view = {row: 0, column: 0, rows: block.rows, columns: block.columns};
  let ramp = null, pending = false;

  const unpack = () => {
    const row = demarc.unpack(block.r), column = demarc.unpack(block.c), value = packed;
    let count = row.length;
    cells = {row, column, value};
    if (block.symmetric) {
      const mirrored = [];
      for (let i = 0; i < count; ++i) if (row[i] !== column[i]) mirrored.push(i);
      cells.row = new Uint32Array(count + mirrored.length);
      cells.column = new Uint32Array(count + mirrored.length);
      cells.value = new Float64Array(count + mirrored.length);
      cells.row.set(row); cells.column.set(column); cells.value.set(value);
      for (const i of mirrored) {
        cells.row[count] = column[i]; cells.column[count] = row[i]; cells.value[count] = value[i];
        ++count;
      }
    }
    canvas.dataset.cells = count;
  };

  const build_ramp = () => {
    ramp = new Uint32Array(256);
    for (let i = 0; i < 256; ++i) {
      const [r, g, b] = scale.color(i / 255);
      ramp[i] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
    }
  };

  // Sizes in CSS pixels.
  const plot = () => {
    const width = Math.max(40, box.clientWidth - margin.left - margin.right);
    if (square) return {width: Math.min(width, 640), height: Math.min(width, 640)};
    const wanted = width * block.rows / Math.max(1, block.columns);
    const height = Math.max(Math.min(120, 26 * block.rows), Math.min(wanted, 560, Math.max(220, innerHeight * 0.75)));
    return {width, height};
  };

  const widest = (pen, labels) => {
    pen.font = "11px system-ui, sans-serif";
    return Math.max(...labels.map((text) => pen.measureText(text).width));
  };

  const label = (labels, index) => labels.length ? labels[index] : String(index);

  const draw = () => {
    pending = false;
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (block.row_labels.length) margin.left = Math.min(box.clientWidth * 0.45, 28 + widest(canvas.getContext("2d"), block.row_labels));
    const {width, height} = plot();
    canvas.dataset.plot = `${width}x${height}`;
    canvas.style.height = height + margin.top + margin.bottom + "px";
    canvas.width = Math.round(box.clientWidth * ratio);
    canvas.height = Math.round((height + margin.top + margin.bottom) * ratio);
    canvas.style.touchAction = view.rows < block.rows ? "none" : "pan-y";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const first_row = Math.floor(view.row), first_column = Math.floor(view.column);
    const rows = Math.min(block.rows, Math.ceil(view.row + view.rows)) - first_row;
    const columns = Math.min(block.columns, Math.ceil(view.column + view.columns)) - first_column;
    const bin_rows = Math.max(1, Math.min(rows, Math.floor(height * ratio)));
    const bin_columns = Math.max(1, Math.min(columns, Math.floor(width * ratio)));
    const bins = new Float64Array(bin_rows * bin_columns).fill(-Infinity);
    const {row, column, value} = cells;
    for (let i = 0; i < row.length; ++i) {
      const r = row[i] - first_row, c = column[i] - first_column;
      if (r < 0 || c < 0 || r >= rows || c >= columns) continue;
      const at = Math.floor(r * bin_rows / rows) * bin_columns + Math.floor(c * bin_columns / columns);
      if (value[i] > bins[at]) bins[at] = value[i];
    }
    const image = new ImageData(bin_columns, bin_rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < bins.length; ++i)
      if (bins[i] !== -Infinity) pixels[i] = ramp[Math.max(0, Math.min(255, Math.round(scale.share(bins[i]) * 255)))];
    const sheet = demarc.element("canvas");
    sheet.width = bin_columns; sheet.height = bin_rows;
    sheet.getContext("2d").putImageData(image, 0, 0);

    const scale_x = width / view.columns, scale_y = height / view.rows;
    pen.save();
    pen.beginPath();
    pen.rect(margin.left, margin.top, width, height);
    pen.clip();
    pen.fillStyle = demarc.color("empty");
    pen.fillRect(margin.left, margin.top, width, height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(sheet, margin.left + (first_column - view.column) * scale_x, margin.top + (first_row - view.row) * scale_y,
      columns * scale_x, rows * scale_y);
    if (block.decimals !== null && scale_x >= 34 && scale_y >= 16) write_values(pen, scale_x, scale_y);
    pen.restore();
    pen.strokeStyle = demarc.color("line");
    pen.strokeRect(margin.left, margin.top, width, height);
    draw_axes(pen, width, height, scale_x, scale_y);
  };

  const write_values = (pen, scale_x, scale_y) => {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let i = 0; i < cells.row.length; ++i) {
      const x = (cells.column[i] + 0.5 - view.column) * scale_x, y = (cells.row[i] + 0.5 - view.row) * scale_y;
      if (x < 0 || y < 0 || x > view.columns * scale_x || y > view.rows * scale_y) continue;
      pen.fillStyle = demarc.ink_on(scale.color(scale.share(cells.value[i])));
      pen.fillText(cells.value[i].toFixed(block.decimals), margin.left + x, margin.top + y);
    }
  };

  // Ticks at cell centres, a round step apart.
  const ticks = (first, count, length, gap) => {
    const wanted = count * gap / length;
    let step = 1;
    while (step < wanted) step = String(step)[0] === "2" ? step * 2.5 : step * 2;
    step = Math.max(1, Math.round(step));
    const found = [];
    for (let i = Math.ceil(first / step) * step; i < first + count && found.length < 100; i += step) found.push(i);
    return found;
  };

  const fitted = (pen, text, width) => {
    if (pen.measureText(text).width <= width) return text;
    while (text.length > 1 && pen.measureText(text + "…").width > width) text = text.slice(0, -1);
    return text + "…";
  };

  const draw_axes = (pen, width, height, scale_x, scale_y) => {
    pen.fillStyle = demarc.color("soft");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const i of ticks(view.row, view.rows, height, 18)) {
      const y = margin.top + (i + 0.5 - view.row) * scale_y;
      if (y >= margin.top && y <= margin.top + height) pen.fillText(fitted(pen, label(block.row_labels, i), margin.left - 22), margin.left - 5, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const gap = block.column_labels.length ? 64 : 46;
    for (const i of ticks(view.column, view.columns, width, gap)) {
      const x = margin.left + (i + 0.5 - view.column) * scale_x;
      if (x >= margin.left && x <= margin.left + width) pen.fillText(fitted(pen, label(block.column_labels, i), Math.max(gap, scale_x) - 4), x, margin.top + height + 5);
    }
    pen.fillStyle = demarc.color("ink");
    pen.fillText(block.column_name, margin.left + width / 2, margin.top + height + 21);
    pen.save();
    pen.translate(2, margin.top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(block.row_name, 0, 0);
    pen.restore();
  };

  const redraw = () => { if (cells && !pending) { pending = true; requestAnimationFrame(draw); } };

  const clamp = () => {
    view.rows = Math.min(block.rows, Math.max(view.rows, Math.min(block.rows, 2)));
    view.columns = Math.min(block.columns, Math.max(view.columns, Math.min(block.columns, 2)));
    view.row = Math.min(Math.max(0, view.row), block.rows - view.rows);
    view.column = Math.min(Math.max(0, view.column), block.columns - view.columns);
    canvas.dataset.zoom = (block.rows / view.rows).toFixed(3);
  };

  // Keeps the cell under (x, y), shares of the plot, where it is.
  const zoom_by = (factor, x = 0.5, y = 0.5) => {
    const row = view.row + y * view.rows, column = view.column + x * view.columns;
    view.rows /= factor; view.columns /= factor;
    view.rows = Math.min(block.rows, Math.max(view.rows, Math.min(block.rows, 2)));
    view.columns = Math.min(block.columns, Math.max(view.columns, Math.min(block.columns, 2)));
    view.row = row - y * view.rows; view.column = column - x * view.columns;
    clamp();
    redraw();
  };

  const reset = () => { view = {row: 0, column: 0, rows: block.rows, columns: block.columns}; clamp(); redraw(); };

  const where = (event) => {
    const area = canvas.getBoundingClientRect(), {width, height} = plot();
    return {x: (event.clientX - area.left - margin.left) / width, y: (event.clientY - area.top - margin.top) / height};
  };

  const point_at = (event) => {
    const {x, y} = where(event);
    if (!cells || x < 0 || y < 0 || x >= 1 || y >= 1) { readout.textContent = ""; return; }
    const row = Math.floor(view.row + y * view.rows), column = Math.floor(view.column + x * view.columns);
    let found = 0;
    for (let i = 0; i < cells.row.length; ++i)
      if (cells.row[i] === row && cells.column[i] === column) { found = cells.value[i]; break; }
    readout.textContent = demarc.cell_words(block, row, column, found);
  };

  const fingers = new Map();
  canvas.addEventListener("wheel", (event) => {
    // The page scrolls over the map until the map is in use: focused, zoomed, or the control key is held.
    if (!event.ctrlKey && document.activeElement !== canvas && view.rows === block.rows) return;
    event.preventDefault();
    const {x, y} = where(event);
    zoom_by(Math.exp(-event.deltaY / 300), x, y);
  }, {passive: false});
  canvas.addEventListener("dblclick", (event) => { const {x, y} = where(event); zoom_by(2, x, y); });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, where(event));
    canvas.focus({preventScroll: true});
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), now = where(event);
    point_at(event);
    if (!before) return;
    if (fingers.size === 2) {
      const other = [...fingers.entries()].find(([id]) => id !== event.pointerId)[1];
      const was = Math.hypot(before.x - other.x, before.y - other.y), is = Math.hypot(now.x - other.x, now.y - other.y);
      if (was > 0 && is > 0) zoom_by(is / was, (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else {
      view.row -= (now.y - before.y) * view.rows;
      view.column -= (now.x - before.x) * view.columns;
      clamp();
      redraw();
    }
    fingers.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => { readout.textContent = ""; });
  canvas.addEventListener("keydown", (event) => {
    const step = 0.15;
    const moves = {ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step]};
    if (event.key === "+" || event.key === "=") zoom_by(1.5);
    else if (event.key === "-") zoom_by(1 / 1.5);
    else if (event.key === "0") reset();
    else if (moves[event.key] && view.rows < block.rows) {
      view.row += moves[event.key][0] * view.rows;
      view.column += moves[event.key][1] * view.columns;
      clamp();
      redraw();
    } else return;
    event.preventDefault();
  });

  demarc.when_visible(box, () => {
    unpack();
    build_ramp();
    clamp();
    draw();
    demarc.on_resize(box, draw);
    demarc.on_theme(() => { build_ramp(); draw(); });
  });
  const made = demarc.figure(block, tools, box, demarc.scale_legend(scale));
  if (square) made.classList.add("square");
  return made;
};
