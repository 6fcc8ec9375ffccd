"use strict";
// Line, scatter and bar charts, distributions and timelines, drawn by Apache ECharts.
// `legend` names the series, {name, color}; pressing a name hides its series or shows it again.
demarc.plot = (block, options, height, legend = []) => {
  const holder = demarc.element("div", {class: "plot"});
  if (height) holder.style.height = height + "px";
  const shown = {};
  let chart = null;
  const keys = legend.length < 2 ? null : demarc.element("div", {class: "legend"}, ...legend.map((one) => {
    const mark = demarc.element("span", {class: "mark"});
    mark.style.background = one.color;
    const key = demarc.element("button", {type: "button", "aria-pressed": "true", click: () => {
      shown[one.name] = shown[one.name] === false;
      key.setAttribute("aria-pressed", String(shown[one.name]));
      if (chart) chart.dispatchAction({type: shown[one.name] ? "legendSelect" : "legendUnSelect", name: one.name});
    }}, mark, one.name);
    return key;
  }));
  demarc.when_visible(holder, () => {
    const draw = () => {
      if (chart) chart.dispose();
      chart = echarts.init(holder, demarc.is_dark() ? "dark" : null, {renderer: "canvas"});
      chart.setOption({backgroundColor: "transparent", color: demarc.palette, animation: false, textStyle: {fontFamily: "system-ui, sans-serif"},
        legend: {show: false, data: legend.map((one) => one.name), selected: shown}, ...options(holder.clientWidth < 520)});
      holder.dataset.drawn = "yes";
    };
    draw();
    let narrow = holder.clientWidth < 520;
    demarc.on_resize(holder, () => {
      if (narrow !== (holder.clientWidth < 520)) { narrow = !narrow; draw(); } else chart.resize();
    });
    demarc.on_theme(draw);
  });
  return keys ? demarc.figure(block, keys, holder) : demarc.figure(block, holder);
};

demarc.axis_name = (axis) => axis.unit ? `${axis.name} (${axis.unit})` : axis.name;

// More categories than fit side by side: their names stand slanted.
demarc.crowded = (axis) => axis.categories.length > 7;

demarc.axis = (axis, extra = {}) => {
  const category = axis.categories.length > 0;
  return {
    type: category ? "category" : axis.log ? "log" : "value",
    data: category ? axis.categories : undefined,
    name: demarc.axis_name(axis), nameLocation: "middle", scale: true,
    logBase: axis.base === null ? 10 : 2,
    startValue: axis.base === null ? undefined : axis.base,
    min: axis.low === null ? undefined : axis.low, max: axis.high === null ? undefined : axis.high,
    axisLabel: demarc.crowded(axis) ? {interval: 0, rotate: 40} : category ? {hideOverlap: true} : {formatter: demarc.place, hideOverlap: true},
    splitLine: {lineStyle: {color: demarc.color("line")}},
    ...extra,
  };
};

demarc.grid = (narrow) => ({left: narrow ? 56 : 72, right: narrow ? 14 : 26, top: 18, bottom: 52});

// "3.2 us (3 to 3.5 us)".
demarc.interval_words = (value, low, high, unit) =>
  demarc.with_unit(value, unit) + (low !== undefined && low !== high ? ` (${demarc.number(low)} to ${demarc.with_unit(high, unit)})` : "");

// Where an axis with a base begins, if values are below it.
demarc.below_base = (block) => {
  if (block.y.base === null) return {};
  const least = Math.min(...block.series.flatMap((one) => one.points.map((point) => point[1])));
  return least < block.y.base ? {min: block.y.log ? Math.pow(2, Math.floor(Math.log2(least))) : Math.floor(least * 10 - 1e-9) / 10} : {min: block.y.base};
};

demarc.series_color = (series, i) => demarc.palette[(series.color ?? i) % demarc.palette.length];

demarc.makers.chart = (block) => demarc.plot(block, (narrow) => {
  const category = block.x.categories.length > 0;
  const bars = block.series.filter((one) => one.kind === "bar").length;
  const series = [];
  let bar = 0;
  block.series.forEach((one, i) => {
    const color = demarc.series_color(one, i);
    const offset = one.kind === "bar" ? bar++ - (bars - 1) / 2 : 0;
    series.push({name: one.name, type: one.kind, data: one.points, color, encode: {x: 0, y: 1}, barGap: "10%", barCategoryGap: "30%",
      showSymbol: one.points.length <= 60, symbolSize: one.kind === "scatter" ? 8 : 5, large: one.points.length > 4000,
      markLine: i === 0 ? reference_lines(block) : undefined});
    if (!one.points.some((point) => point.length > 2 && point[2] !== point[3])) return;
    series.push({name: one.name, type: "custom", data: one.points, color, encode: {x: 0, y: [1, 2, 3]}, z: 5, silent: true,
      renderItem: (params, api) => {
        if (Number.isNaN(api.value(2)) || api.value(2) === undefined) return null;
        const step = category && one.kind === "bar" ? api.size([1, 0])[0] * 0.7 / bars : 0;
        const low = api.coord([api.value(0), api.value(2)]), high = api.coord([api.value(0), api.value(3)]);
        const x = low[0] + offset * step * 1.02, cap = 4, style = {stroke: demarc.color("ink"), lineWidth: 1.2, fill: "none"};
        const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style});
        return {type: "group", children: [line(x, low[1], x, high[1]), line(x - cap, low[1], x + cap, low[1]), line(x - cap, high[1], x + cap, high[1])]};
      }});
  });
  if (block.diagonal) {
    const values = block.series.flatMap((one) => one.points.flatMap((point) => [point[0], point[1]])).filter((value) => value !== null);
    const low = Math.min(...values), high = Math.max(...values);
    series.push({name: "", type: "line", data: [[low, low], [high, high]], showSymbol: false, silent: true, tooltip: {show: false},
      lineStyle: {type: "dashed", width: 1, color: demarc.color("soft")}});
  }
  return {
    grid: {...demarc.grid(narrow), ...(demarc.crowded(block.x) ? {bottom: 112} : {})},
    tooltip: {trigger: bars ? "axis" : "item", confine: true, renderMode: "richText", formatter: (hit) => demarc.chart_words(block, Array.isArray(hit) ? hit : [hit])},
    xAxis: demarc.axis(block.x, {nameGap: demarc.crowded(block.x) ? 100 : 30}),
    yAxis: demarc.axis(block.y, {nameGap: narrow ? 42 : 54, scale: !bars, ...demarc.below_base(block)}),
    dataZoom: category ? undefined : [{type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, filterMode: "none"}],
    series,
  };

  function reference_lines(chart) {
    const data = chart.lines.map((line) => ({name: line.name, label: {formatter: line.name, position: line.vertical ? "end" : "insideEndTop"},
      [line.vertical ? "xAxis" : "yAxis"]: line.value}));
    return data.length ? {silent: true, symbol: "none", lineStyle: {type: "dashed", color: demarc.color("soft")}, label: {color: demarc.color("soft")}, data} : undefined;
  }
}, 0, block.series.map((one, i) => ({name: one.name, color: demarc.series_color(one, i)})));

// What is said of the points under the pointer: where they are, then each series' name and value, with names and units.
demarc.chart_words = (block, entries) => {
  const points = entries.filter((entry) => entry.seriesType !== "custom" && Array.isArray(entry.value));
  if (!points.length) return "";
  const [x] = points[0].value;
  const place = block.x.categories.length ? block.x.categories[x] : demarc.with_unit(x, block.x.unit);
  const lines = points.map((entry) => {
    const [, y, low, high, label] = entry.value;
    return `${[entry.seriesName, label].filter(Boolean).join(", ") || block.y.name}: ${demarc.interval_words(y, low, high, block.y.unit)}`;
  });
  return [`${block.x.name} ${place}`.trim(), block.y.name, ...lines].filter(Boolean).join("\n");
};

demarc.makers.box = (block) => demarc.plot(block, (narrow) => {
  const names = block.samples.map((sample) => sample.name);
  const boxes = [], extremes = [];
  block.samples.forEach((sample, i) => {
    if (!sample.box.length) return;
    boxes.push([i, ...sample.box.slice(1, 6)]);
    extremes.push([i, sample.box[0]], [i, sample.box[6]]);
  });
  return {
    grid: demarc.grid(narrow),
    tooltip: {confine: true, renderMode: "richText", formatter: (hit) => {
      const sample = block.samples[hit.value[0]], [low, high] = sample.whiskers;
      const names = ["min", low, "p25", "median", "p75", high, "max"];
      const lines = sample.box.map((value, k) => `${names[k]} ${demarc.with_unit(value, block.value.unit)}`);
      return `${sample.name}: ${block.value.name} of ${sample.count} values\n` + lines.filter((line, k) => line !== lines[k - 1]).join("\n");
    }},
    xAxis: {type: "category", data: names, axisLabel: {hideOverlap: true, rotate: narrow && names.length > 4 ? 40 : 0}},
    yAxis: demarc.axis(block.value, {nameGap: narrow ? 42 : 54}),
    series: [{type: "boxplot", data: boxes, encode: {x: 0, y: [1, 2, 3, 4, 5]}, itemStyle: {borderColor: demarc.palette[0]}},
      {type: "scatter", data: extremes, symbolSize: 5, color: demarc.palette[1]}],
  };
});

demarc.makers.histogram = (block) => demarc.plot(block, (narrow) => ({
  grid: demarc.grid(narrow),
  tooltip: {trigger: "item", confine: true, renderMode: "richText", formatter: (hit) =>
    `${hit.seriesName}\n${block.value.name} ${demarc.number(hit.value[0])} to ${demarc.with_unit(hit.value[1], block.value.unit)}: ${demarc.number(hit.value[2])} values`},
  xAxis: demarc.axis(block.value, {nameGap: 30}),
  yAxis: {type: "value", name: "values", nameLocation: "middle", nameGap: narrow ? 42 : 54, splitLine: {lineStyle: {color: demarc.color("line")}}},
  series: block.samples.map((sample) => ({name: sample.name, type: "custom", encode: {x: [0, 1], y: 2},
    data: sample.counts.map((count, i) => [block.start + i * block.width, block.start + (i + 1) * block.width, count]),
    renderItem: (params, api) => {
      const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), 0]);
      return {type: "rect", shape: {x: a[0], y: a[1], width: Math.max(1, b[0] - a[0] - 1), height: b[1] - a[1]},
        style: {fill: api.visual("color"), opacity: block.samples.length > 1 ? 0.55 : 0.9}};
    }})),
}), 0, block.samples.map((sample, i) => ({name: sample.name, color: demarc.palette[i % demarc.palette.length]})));

demarc.makers.timeline = (block) => {
  const height = Math.min(900, Math.max(180, 26 * block.tracks.length + 110));
  return demarc.plot(block, (narrow) => {
    const track = demarc.unpack(block.t), group = demarc.unpack(block.g), start = demarc.unpack(block.s), end = demarc.unpack(block.e);
    const series = (block.groups.length ? block.groups : [""]).map((name, g) => ({name, type: "custom", encode: {x: [1, 2], y: 0}, data: [], clip: true,
      progressive: 4000, renderItem: (params, api) => {
        const from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]);
        const tall = Math.max(2, api.size([0, 1])[1] * 0.72);
        const clipped = echarts.graphic.clipRectByRect({x: from[0], y: from[1] - tall / 2, width: Math.max(1, to[0] - from[0]), height: tall}, params.coordSys);
        return clipped && {type: "rect", shape: clipped, style: {fill: demarc.palette[g % demarc.palette.length], stroke: demarc.color("card"), lineWidth: clipped.width > 6 ? 0.8 : 0}};
      }}));
    for (let i = 0; i < track.length; ++i) series[Math.min(group[i], series.length - 1)].data.push([track[i], start[i], end[i], i]);
    return {
      grid: {left: narrow ? 62 : 96, right: 18, top: 14, bottom: 84},
      tooltip: {confine: true, renderMode: "richText", formatter: (hit) => {
        const [row, from, to, i] = hit.value;
        return `${block.labels[i] || hit.seriesName}\n${block.tracks[row]}\n${demarc.place(from)} to ${demarc.place(to)} ${block.unit}`;
      }},
      xAxis: {type: "value", name: block.unit, nameLocation: "middle", nameGap: 26, scale: true, min: "dataMin", max: "dataMax", axisLabel: {formatter: demarc.place, hideOverlap: true}},
      yAxis: {type: "category", data: block.tracks, inverse: true},
      dataZoom: [{type: "slider", filterMode: "weakFilter", bottom: 8, height: 22, showDataShadow: false, labelFormatter: ""}, {type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl"}],
      series,
    };
  }, height, block.groups.map((name, g) => ({name, color: demarc.palette[g % demarc.palette.length]})));
};
