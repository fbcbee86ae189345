"use strict";
(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const { nodes, edges } = report;
  const $ = (id) => document.getElementById(id);
  const svg = $("drawing");

  // --- elements: everything from the data goes through textContent and setAttribute, so that names are only text ---

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }
  const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const s = (tag, attributes, ...children) => fill(document.createElementNS(svg.namespaceURI, tag), attributes, children);

  function button(label, act, attributes) {
    const element = h("button", { type: "button", ...attributes }, ...[label].flat());
    element.addEventListener("click", act);
    return element;
  }

  const minus = (text) => text.replace("-", "−");
  const known = (value) => value !== null && value !== undefined;
  function shown(value, digits = 3) {
    if (!known(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-4 || size >= 1e6) return minus(value.toExponential(digits - 1));
    return minus(String(Number(value.toPrecision(digits))));
  }
  const percent = (share) => `${Math.round(100 * share)} %`;
  const pValue = (value) => (known(value) && value < 1e-16 ? "< 1e−16" : shown(value, 2));
  const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

  // --- edges and their properties ----------------------------------------------------------------------------------

  const size = (edge) => Math.abs((report.standardised ? edge.standardised : edge.coefficient) || 0);
  const largest = Math.max(0, ...edges.map(size));
  const found = (edge) => (edge.shares ? 1 - edge.shares[3] : 1);
  const sign = (edge) => (edge.coefficient > 0 ? "positive" : edge.coefficient < 0 ? "negative" : "unsigned");
  // coefficients in the units of the columns cannot be compared: without standardised ones all lines are alike
  const lineWidth = (edge) => (report.standardised ? 1.25 + 4.25 * Math.min(1, size(edge)) : 2.5);
  const ARROW = { oriented: "→", known: "⇒", free: "—" };
  const DIRECTION = { oriented: `decided by ${report.consensus ? "most samples" : "the score"}`, known: "known beforehand", free: "open" };
  const BRIEFLY = { oriented: "decided", known: "known", free: "open" };
  const title = (edge) => `${nodes[edge.s].text} ${ARROW[edge.direction]} ${nodes[edge.t].text}`;
  // names that are written from right to left turn nothing around that stands beside them
  const alone = (node) => h("bdi", {}, node.text);

  nodes.forEach((node, k) => Object.assign(node, { k, into: [], out: [], x0: node.x, y0: node.y }));
  edges.forEach((edge, k) => {
    edge.k = k;
    nodes[edge.t].into.push(edge);
    nodes[edge.s].out.push(edge);
  });

  const filters = { strength: 0, share: 0, free: true, differs: false, text: "" };
  const drawn = (edge) =>
    size(edge) >= filters.strength - 1e-12 && found(edge) >= filters.share - 1e-12 &&
    (filters.free || edge.direction !== "free") && (!filters.differs || edge.beside !== "same");

  // --- the drawing -------------------------------------------------------------------------------------------------

  const HEAD = 9;
  const world = s("g");
  const edgeLayer = s("g", { "aria-hidden": "true" });
  const nodeLayer = s("g");

  /** Points of an edge from box to box; ends follow nodes that were dragged. */
  function points(edge) {
    const a = nodes[edge.s], b = nodes[edge.t], half = report.height / 2, route = edge.route;
    const start = [a.x + route[1][0] - a.x0, a.y + half];
    const end = [b.x + route[route.length - 2][0] - b.x0, b.y - half];
    if (end[1] > start[1] + 4) return [start, ...route.slice(2, -2), end];
    // upwards: straight between the boxes
    const clip = (from, to) => {
      const dx = to.x - from.x, dy = to.y - from.y;
      const t = Math.min(1, from.w / 2 / (Math.abs(dx) || 1e-9), half / (Math.abs(dy) || 1e-9));
      return [from.x + t * dx, from.y + t * dy];
    };
    return [clip(a, b), clip(b, a)];
  }

  function shape(edge) {
    const path = points(edge);
    const bent = path.length > 2 || path[1][1] > path[0][1];
    const end = path[path.length - 1];
    const before = bent ? [end[0], end[1] - 1] : path[path.length - 2];
    const length = Math.hypot(end[0] - before[0], end[1] - before[1]) || 1;
    const [ux, uy] = [(end[0] - before[0]) / length, (end[1] - before[1]) / length];
    let head = "";
    if (edge.direction !== "free") {
      const wide = 3.5 + lineWidth(edge) * 0.75, [bx, by] = [end[0] - HEAD * ux, end[1] - HEAD * uy];
      head = `M${end}L${[bx - wide * uy, by + wide * ux]}L${[bx + wide * uy, by - wide * ux]}Z`;
      path[path.length - 1] = [bx + ux, by + uy];
    }
    let line = `M${path[0]}`;
    for (let k = 1; k < path.length; k += 1) {
      const [p, q] = [path[k - 1], path[k]], middle = (p[1] + q[1]) / 2;
      line += !bent || Math.abs(p[0] - q[0]) < 0.5 ? `L${q}` : `C${p[0]},${middle},${q[0]},${middle},${q}`;
    }
    return { line, head };
  }

  function place(edge) {
    const { line, head } = shape(edge);
    for (const path of edge.lines) path.setAttribute("d", line);
    edge.head.setAttribute("d", head);
  }

  for (const edge of edges) {
    const width = lineWidth(edge);
    const line = s("path", { class: "line", "stroke-width": edge.direction === "known" ? width + 2.5 : width });
    const inner = edge.direction === "known" ? s("path", { class: "inner", "stroke-width": Math.max(1.2, width - 0.5) }) : null;
    const hit = s("path", { class: "hit" });
    const halo = s("path", { class: "halo", "stroke-width": width + 8 });
    edge.head = s("path", { class: "head" });
    edge.lines = [halo, line, inner, hit].filter(Boolean);
    // of strokes and fills: groups of their own opacity are slow to paint
    const opacity = 0.25 + 0.75 * found(edge);
    edge.group = s("g", { class: `edge ${edge.direction} ${sign(edge)}`, "data-edge": edge.k, "stroke-opacity": opacity, "fill-opacity": opacity },
      halo, line, inner, edge.head, hit);
    place(edge);
    edgeLayer.append(edge.group);
  }
  for (const node of nodes) {
    const counts = `${plural(node.into.length, "cause")}, ${plural(node.out.length, "effect")}`;
    // what is seen is part of what is said, for those who speak to their computer
    const label = node.label === node.text ? node.text : `${node.label}, ${node.text}`;
    node.group = s("g", { class: "node", role: "button", tabindex: "-1", "data-node": node.k, "aria-label": `${label}, ${counts}`,
      transform: `translate(${node.x},${node.y})` },
      s("rect", { x: -node.w / 2, y: -report.height / 2, width: node.w, height: report.height }), s("text", {}, node.label));
    nodeLayer.append(node.group);
  }
  world.append(edgeLayer, nodeLayer);
  svg.append(world);
  svg.setAttribute("aria-label", `The graph: ${plural(nodes.length, "column")}, ${plural(edges.length, "edge")}. The table below has all edges.`);

  // --- view: screen = scale * drawing + offset ---------------------------------------------------------------------

  const view = { scale: 1, x: 0, y: 0, fitted: 1 };
  function look(scale, x, y) {
    Object.assign(view, { scale, x, y });
    world.setAttribute("transform", `translate(${x},${y}) scale(${scale})`);
    svg.classList.toggle("zoomed", scale > view.fitted * 1.02);
  }
  /** As high as the graph needs at this width, within limits. */
  function shapeStage() {
    const width = svg.clientWidth, ratio = report.size[1] / Math.max(report.size[0], 1);
    const height = Math.round(Math.min(620, 0.8 * innerHeight, Math.max(300, 1.25 * report.size[1] + 80, 0.5 * width)));
    svg.style.height = `${Math.min(height, Math.max(300, width * ratio + 120))}px`;
    $("details").style.maxHeight = width > 600 ? svg.style.height : "";
  }
  function fit() {
    shapeStage();
    const box = svg.getBoundingClientRect(), margin = 28;
    const [w, height] = [Math.max(report.size[0], 1), Math.max(report.size[1], 1)];
    const scale = Math.min((box.width - 2 * margin) / w, (box.height - 2 * margin) / height, 1.25);
    view.fitted = scale;
    look(scale, (box.width - scale * w) / 2, (box.height - scale * height) / 2);
  }
  function zoom(factor, x, y) {
    const box = svg.getBoundingClientRect();
    const [cx, cy] = [x === undefined ? box.width / 2 : x, y === undefined ? box.height / 2 : y];
    const scale = Math.min(4, Math.max(Math.min(view.fitted, 1) / 2, view.scale * factor)), by = scale / view.scale;
    look(scale, cx - (cx - view.x) * by, cy - (cy - view.y) * by);
  }
  function centre(node, scale = Math.max(view.scale, 0.9)) {
    const box = svg.getBoundingClientRect();
    look(scale, box.width / 2 - scale * node.x, box.height / 2 - scale * node.y);
  }
  /** Move the view only if a node is not in it. */
  function reveal(node) {
    const box = svg.getBoundingClientRect(), [x, y] = [view.scale * node.x + view.x, view.scale * node.y + view.y];
    if (view.scale < 0.55 || x < 20 || y < 20 || x > box.width - 20 || y > box.height - 20) centre(node);
  }
  $("zoom-in").addEventListener("click", () => zoom(1.4));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  $("fit").addEventListener("click", fit);
  new ResizeObserver(fit).observe(svg);

  svg.addEventListener("wheel", (event) => {
    // the page scrolls as ever, unless zooming is meant
    if (!event.ctrlKey && !event.metaKey && !svg.contains(document.activeElement)) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  const pointers = new Map();
  let gesture = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, event);
    const target = event.target.closest("[data-node]");
    gesture = { node: target && nodes[target.dataset.node], edge: event.target.closest("[data-edge]"), moved: false, at: event };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!gesture || !pointers.has(event.pointerId)) return;
    const before = pointers.get(event.pointerId), others = [...pointers.values()].filter((p) => p.pointerId !== event.pointerId);
    if (!gesture.moved && Math.hypot(event.clientX - gesture.at.clientX, event.clientY - gesture.at.clientY) < 4) return;
    if (!gesture.moved) svg.setPointerCapture(event.pointerId);
    gesture.moved = true;
    svg.classList.add("dragging");
    hideTip();
    pointers.set(event.pointerId, event);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (others.length) {
      const [o] = others, gap = (p) => Math.hypot(p.clientX - o.clientX, p.clientY - o.clientY), box = svg.getBoundingClientRect();
      zoom(gap(event) / (gap(before) || 1), (event.clientX + o.clientX) / 2 - box.left, (event.clientY + o.clientY) / 2 - box.top);
    } else if (gesture.node) {
      const node = gesture.node;
      node.x += dx / view.scale;
      node.y += dy / view.scale;
      node.group.setAttribute("transform", `translate(${node.x},${node.y})`);
      for (const edge of [...node.into, ...node.out]) place(edge);
    } else {
      look(view.scale, view.x + dx, view.y + dy);
    }
  });
  function release(event) {
    pointers.delete(event.pointerId);
    svg.classList.remove("dragging");
    if (gesture && !gesture.moved && event.type === "pointerup") {
      if (gesture.node) choose(gesture.node);
      else choose(gesture.edge ? edges[gesture.edge.dataset.edge] : null);
    }
    if (!pointers.size) gesture = null;
  }
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);

  // --- what is chosen ----------------------------------------------------------------------------------------------

  let chosen = null;
  let around = "neighbours";
  const isNode = (thing) => thing !== null && "into" in thing;

  /** Nodes and edges that belong to the neighbourhood of a node, among the edges that are drawn. */
  function neighbourhood(node) {
    const some = new Set([node]), lines = new Set();
    const walk = (start, next, end) => {
      const queue = [start];
      for (const here of queue) {
        for (const edge of here[next].filter(drawn)) {
          lines.add(edge);
          const there = nodes[edge[end]];
          if (!some.has(there)) queue.push(there);
          some.add(there);
        }
      }
    };
    if (around === "ancestors") walk(node, "into", "s");
    else if (around === "descendants") walk(node, "out", "t");
    else {
      for (const edge of [...node.into, ...node.out].filter(drawn)) {
        lines.add(edge);
        some.add(nodes[edge.s]).add(nodes[edge.t]);
        // the other causes of its effects
        if (around === "blanket" && edge.s === node.k) {
          for (const beside of nodes[edge.t].into.filter(drawn)) {
            lines.add(beside);
            some.add(nodes[beside.s]);
          }
        }
      }
    }
    return { some, lines };
  }

  function choose(thing, { move = false } = {}) {
    chosen = thing;
    hideTip();
    if (isNode(thing)) {
      focusable(thing);
      if (move) reveal(thing);
    } else if (thing && move) {
      reveal(nodes[thing.s]);
    }
    update();
  }

  function mark() {
    let some = new Set(), lines = new Set();
    if (isNode(chosen)) ({ some, lines } = neighbourhood(chosen));
    else if (chosen) [some, lines] = [new Set([nodes[chosen.s], nodes[chosen.t]]), new Set([chosen])];
    svg.classList.toggle("focused", chosen !== null);
    for (const node of nodes) {
      node.group.classList.toggle("on", some.has(node));
      node.group.classList.toggle("chosen", node === chosen);
      node.group.setAttribute("aria-pressed", String(node === chosen));
    }
    for (const edge of edges) {
      edge.group.classList.toggle("on", lines.has(edge));
      edge.group.classList.toggle("chosen", edge === chosen);
    }
    return { some, lines };
  }

  // --- details -----------------------------------------------------------------------------------------------------

  const BESIDE = { same: "the same", free: "there, direction open", reversed: "reversed", absent: "not there" };

  function edgeDetails(edge) {
    const rows = [["direction", DIRECTION[edge.direction]]];
    if (known(edge.coefficient)) {
      rows.push([report.coefficient, shown(edge.coefficient, 4) + (known(edge.error) ? ` ± ${shown(edge.error, 2)}` : "")]);
    }
    if (known(edge.standardised)) rows.push(["standardised", shown(edge.standardised)]);
    if (known(edge.p)) rows.push([report.tested ? "p-value" : "p-value, given the graph", pValue(edge.p)]);
    if (edge.shares) rows.push(["found in", `${percent(found(edge))} of the samples`]);
    if (edge.beside) rows.push([`in ${report.other}`, BESIDE[edge.beside]]);
    const list = h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    const parts = [h("h3", {}, alone(nodes[edge.s]), ` ${ARROW[edge.direction]} `, alone(nodes[edge.t])), list];
    if (edge.shares) {
      const kinds = ["same", "reversed", "free"], bar = h("div", { class: "shares", "aria-hidden": "true" });
      kinds.forEach((kind, k) => {
        const part = h("span", { class: `share-${kind}` });
        part.style.width = `${100 * edge.shares[k]}%`;
        bar.append(part);
      });
      const [same, reversed, free, absent] = edge.shares.map(percent);
      parts.push(bar, h("p", { class: "quiet" }, `This direction ${same}, reversed ${reversed}, open ${free}, no edge ${absent}.`));
    }
    if (edge.why) parts.push(h("p", { class: "quiet" }, `Pruning ${edge.why}.`));
    return parts;
  }

  function edgeList(heading, list, end) {
    if (!list.length) return [];
    const items = [...list].sort((a, b) => size(b) - size(a)).map((edge) => {
      const value = report.standardised ? edge.standardised : edge.coefficient;
      const item = button([h("span", {}, alone(nodes[edge[end(edge)]])), " ", h("span", {}, shown(value, 2))], () => choose(edge));
      item.addEventListener("focus", () => edge.group.classList.add("hover"));
      item.addEventListener("blur", () => edge.group.classList.remove("hover"));
      return h("li", {}, item);
    });
    return [h("h4", {}, heading), h("ul", {}, ...items)];
  }

  const AROUND = { neighbours: "Neighbours", ancestors: "Ancestors", descendants: "Descendants", blanket: "Markov blanket" };

  function nodeDetails(node, { some, lines }) {
    const into = node.into.filter((e) => drawn(e) && e.direction !== "free"), out = node.out.filter((e) => drawn(e) && e.direction !== "free");
    const open = [...node.into, ...node.out].filter((e) => drawn(e) && e.direction === "free");
    const column = report.columns && report.columns[node.k];
    const parts = [h("h3", {}, alone(node)), h("p", { class: "quiet" }, `${AROUND[around]}: ${plural(some.size - 1, "column")} highlighted.`)];
    if ((around === "ancestors" || around === "descendants") && [...lines].some((edge) => edge.direction === "free")) {
      parts.push(h("p", { class: "quiet" }, "Some of the directions on the way are open: as drawn, but not as decided."));
    }
    if (column) parts.push(histogram(column), h("p", { class: "quiet" }, `Mean ${shown(column.mean)}, standard deviation ${shown(column.deviation)}`));
    parts.push(...edgeList("Causes", into, () => "s"), ...edgeList("Effects", out, () => "t"),
      ...edgeList("Direction open", open, (edge) => (edge.s === node.k ? "t" : "s")));
    if (!into.length && !out.length && !open.length) parts.push(h("p", {}, "No edges are shown here."));
    return parts;
  }

  function overview() {
    const hubs = nodes.filter((n) => n.into.length + n.out.length).sort((a, b) => b.into.length + b.out.length - a.into.length - a.out.length).slice(0, 6);
    const items = hubs.map((node) => h("li", {}, button([h("span", {}, alone(node)), h("span", {}, plural(node.into.length + node.out.length, "edge"))],
      () => choose(node, { move: true }))));
    return [h("h3", {}, "Nothing chosen"), h("p", { class: "quiet" }, "Choose a column or an edge to see its details."),
      ...(items.length ? [h("h4", {}, "Most connected"), h("ul", {}, ...items)] : [])];
  }

  const tip = $("tip");
  function hideTip() {
    tip.hidden = true;
    for (const edge of svg.querySelectorAll(".edge.hover")) edge.classList.remove("hover");
  }
  svg.addEventListener("pointerover", (event) => {
    if (gesture || event.pointerType === "touch") return;
    hideTip();
    const line = event.target.closest("[data-edge]"), box = event.target.closest("[data-node]");
    if (line) {
      line.classList.add("hover");
      tip.replaceChildren(...edgeDetails(edges[line.dataset.edge]));
    } else if (box && nodes[box.dataset.node].label !== nodes[box.dataset.node].text) {
      tip.replaceChildren(h("h3", {}, alone(nodes[box.dataset.node])));
    } else return;
    tip.hidden = false;
    const frame = $("canvas").getBoundingClientRect(), [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    tip.style.left = `${Math.max(8, Math.min(x + 16, frame.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 20 + tip.offsetHeight > frame.height ? Math.max(8, y - tip.offsetHeight - 14) : y + 20}px`;
  });
  svg.addEventListener("pointerleave", hideTip);

  // --- keyboard in the drawing: one stop for Tab, arrows from there --------------------------------------------------

  let stop = null;
  function focusable(node) {
    if (stop) stop.group.setAttribute("tabindex", "-1");
    stop = node;
    stop.group.setAttribute("tabindex", "0");
  }
  const reading = (a, b) => a.y - b.y || a.x - b.x;
  if (nodes.length) focusable([...nodes].sort(reading)[0]);
  const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

  /** Sideways the next node as one reads, so that all are reached; up and down the nearest one, what lies aside counting double. */
  function beyond(node, [sideways, down]) {
    if (sideways) {
      const order = [...nodes].sort(reading);
      return order[order.indexOf(node) + sideways] || null;
    }
    const far = (other) => Math.abs(other.y - node.y) + 2 * Math.abs(other.x - node.x);
    const there = nodes.filter((other) => (other.y - node.y) * down > 1);
    return there.reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
  }
  svg.addEventListener("keydown", (event) => {
    const target = event.target.closest("[data-node]");
    if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = nodes[target.dataset.node];
    if (ARROWS[event.key]) {
      const next = beyond(node, ARROWS[event.key]);
      if (next) {
        focusable(next);
        reveal(next);
        next.group.focus({ preventScroll: true });
      }
    } else if (event.key === "Enter" || event.key === " ") choose(node);
    else if (event.key === "Escape") choose(null);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });

  // --- tools -------------------------------------------------------------------------------------------------------

  for (const [name, label] of Object.entries(AROUND)) {
    const input = h("input", { type: "radio", name: "around", value: name, checked: name === around });
    input.addEventListener("change", () => {
      around = name;
      update();
    });
    $("around").append(h("label", {}, input, label));
  }

  const find = $("find");
  function matching() {
    const wanted = find.value.trim().toLowerCase();
    if (!wanted) return [];
    const starts = (node) => (node.name.toLowerCase().startsWith(wanted) ? 0 : 1);
    return nodes.filter((node) => node.name.toLowerCase().includes(wanted)).sort((a, b) => starts(a) - starts(b));
  }
  function go(node) {
    find.value = "";
    search();
    choose(node);
    centre(node);
    node.group.focus({ preventScroll: true });
  }
  function search() {
    const hits = matching(), set = new Set(hits);
    for (const node of nodes) node.group.classList.toggle("match", set.has(node));
    const items = hits.slice(0, 8).map((node) => h("li", {}, button(node.text, () => go(node))));
    if (find.value.trim() && hits.length !== items.length) items.push(h("li", {}, h("p", {}, `and ${hits.length - items.length} more`)));
    if (find.value.trim() && !hits.length) items.push(h("li", {}, h("p", {}, "No column has this in its name.")));
    $("matches").replaceChildren(...items);
  }
  find.addEventListener("input", search);
  find.closest(".find").addEventListener("keydown", (event) => {
    const buttons = [...$("matches").querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
    if (event.key === "Enter" && event.target === find && buttons.length) go(matching()[0]);
    else if (event.key === "ArrowDown" && buttons.length) buttons[Math.min(at + 1, buttons.length - 1)].focus();
    else if (event.key === "ArrowUp" && at >= 0) (buttons[at - 1] || find).focus();
    else if (event.key === "Escape") {
      find.value = "";
      search();
      find.focus();
    } else return;
    event.preventDefault();
  });

  if (matchMedia("(max-width: 40rem)").matches) $("filters").open = false;
  const strength = $("strength");
  $("strength-field").hidden = !(report.standardised && largest > 0);
  strength.max = String(largest);
  strength.step = String(largest / 200 || 1);
  strength.addEventListener("input", () => {
    filters.strength = Number(strength.value);
    update();
  });
  $("confidence-field").hidden = !report.sampled;
  $("confidence").addEventListener("input", (event) => {
    filters.share = Number(event.target.value) / 100;
    update();
  });
  $("free-field").hidden = !edges.some((edge) => edge.direction === "free");
  $("free").addEventListener("change", (event) => {
    filters.free = event.target.checked;
    update();
  });
  $("differs-field").hidden = report.other === null;
  if (report.other !== null) $("differs-field").append(` from ${report.other}`);
  $("differs").addEventListener("change", (event) => {
    filters.differs = event.target.checked;
    update();
  });

  function legend() {
    const sample = (kind, label, wide = 2.5) => {
      const line = (attributes) => s("path", { d: "M1,6H33", ...attributes });
      const free = kind.includes("free"), double = kind.includes("known");
      const mark = s("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" }, s("g", { class: `edge ${kind}` },
        line({ class: "line", "stroke-width": double ? wide + 2.5 : wide }), double ? line({ class: "inner", "stroke-width": 2 }) : null,
        free ? null : s("path", { class: "head", d: "M34,6L26,1L26,11Z" })));
      return h("li", {}, mark, label);
    };
    const has = (test) => edges.some(test), items = [];
    if (has((e) => e.coefficient > 0)) items.push(sample("oriented positive", "more of the cause, more of the effect"));
    if (has((e) => e.coefficient < 0)) items.push(sample("oriented negative", "more of the cause, less of the effect"));
    if (has((e) => e.direction === "free")) items.push(sample("free unsigned", "direction open"));
    if (has((e) => e.direction === "known")) items.push(sample("known unsigned", "known beforehand"));
    if (report.standardised && largest > 0) items.push(h("li", {}, "Width: size of the standardised coefficient."));
    if (report.sampled) items.push(h("li", {}, "Faint: found in few of the samples."));
    $("legend").replaceChildren(...items);
  }

  // --- the table ---------------------------------------------------------------------------------------------------

  const COLUMNS = [
    { name: "Cause", key: "source", value: (e) => nodes[e.s].name },
    { name: "Effect", key: "target", value: (e) => nodes[e.t].name },
    { name: "Direction", key: "direction", value: (e) => e.direction, text: (e) => `${ARROW[e.direction]} ${BRIEFLY[e.direction]}` },
    { name: report.coefficient === "slope" ? "Slope" : "Coefficient", key: "coefficient", value: (e) => e.coefficient, text: (e) => shown(e.coefficient, 4) },
    { name: "Std. error", key: "error", value: (e) => e.error, text: (e) => shown(e.error, 2) },
    { name: "Standardised", key: "standardised", value: (e) => e.standardised, text: (e) => shown(e.standardised) },
    { name: "p-value", key: report.tested ? "p_value" : "p_value_given_graph", value: (e) => e.p, text: (e) => pValue(e.p) },
    { name: "Found in", key: "adjacent", value: (e) => e.shares && found(e), text: (e) => percent(found(e)) },
    { name: "This direction", key: "same", value: (e) => e.shares && e.shares[0], text: (e) => percent(e.shares[0]) },
    // in the file only
    { key: "reversed", value: (e) => e.shares && e.shares[1] },
    { key: "free", value: (e) => e.shares && e.shares[2] },
    { key: "pruning", value: (e) => e.why || null },
    { name: `In ${report.other}`, key: "beside", value: (e) => e.beside, text: (e) => BESIDE[e.beside] },
  ].filter((column, k) => k < 3 || edges.some((edge) => known(column.value(edge))));
  const isNumber = (column) => edges.some((edge) => typeof column.value(edge) === "number");
  // "Strength" is no column of its own: the table begins with the strongest edges
  const sorting = { column: null, up: false };
  const FIRST = 200;
  let whole = false;

  function listed() {
    const wanted = filters.text.trim().toLowerCase();
    const rows = edges.filter((edge) => drawn(edge) &&
      (!wanted || nodes[edge.s].name.toLowerCase().includes(wanted) || nodes[edge.t].name.toLowerCase().includes(wanted)));
    if (!sorting.column) return rows.sort((a, b) => size(b) - size(a));
    const { value } = sorting.column, order = sorting.up ? 1 : -1;
    return rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (!known(x) || !known(y)) return known(y) - known(x);
      return order * (typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true }));
    });
  }

  for (const column of COLUMNS) column.numeric = isNumber(column);
  const SHOWN = COLUMNS.filter((column) => column.name);
  const heads = SHOWN.map((column) => h("th", { scope: "col", class: column.numeric && "number" }, button(column.name, () => {
    // numbers first with the largest, names first with the first
    sorting.up = sorting.column === column ? !sorting.up : !column.numeric;
    sorting.column = column;
    SHOWN.forEach((other, k) => {
      if (other === column) heads[k].setAttribute("aria-sort", sorting.up ? "ascending" : "descending");
      else heads[k].removeAttribute("aria-sort");
    });
    table();
  })));
  $("table").tHead.append(h("tr", {}, ...heads));
  const body = $("table").tBodies[0];

  function row(edge) {
    if (!edge.row) {
      const link = button(nodes[edge.s].text, () => {
        choose(edge, { move: true });
        $("graph").scrollIntoView();
      }, { "aria-label": `${title(edge)}: show in the graph`, tabindex: "-1" });
      edge.row = h("tr", {}, h("td", { class: "name" }, link), h("td", { class: "name" }, nodes[edge.t].text), ...SHOWN.slice(2).map((column) =>
        h("td", { class: column.numeric && "number" }, known(column.value(edge)) ? column.text(edge) : "–")));
    }
    edge.row.classList.toggle("chosen", edge === chosen);
    return edge.row;
  }
  function table() {
    const rows = listed(), few = whole ? rows : rows.slice(0, FIRST);
    body.replaceChildren(...few.map(row));
    if (!body.querySelector("button[tabindex='0']") && few.length) few[0].row.querySelector("button").tabIndex = 0;
    const total = rows.length === edges.length ? plural(edges.length, "edge") : `${rows.length.toLocaleString("en")} of ${plural(edges.length, "edge")}`;
    $("rows").textContent = few.length < rows.length ? `The first ${few.length} of ${plural(rows.length, "edge")}.` : `${total}.`;
    $("more").hidden = few.length === rows.length;
    $("download").disabled = !rows.length;
  }
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], here = event.target.closest("tr");
    const next = step && here && (step > 0 ? here.nextElementSibling : here.previousElementSibling);
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    const target = next.querySelector("button");
    target.tabIndex = 0;
    target.focus();
  });
  $("more").addEventListener("click", () => {
    whole = true;
    table();
  });
  $("filter").addEventListener("input", (event) => {
    filters.text = event.target.value;
    table();
  });

  /** A cell that no spreadsheet runs as a formula, as in the files of the command line. */
  function cell(value) {
    if (!known(value)) return "";
    if (typeof value === "number") return String(value);
    const text = /^'*[=+@\t\r\n-]/.test(value) ? `'${value}` : value;
    return /[,;|\t"\r\n]|^#/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  $("download").addEventListener("click", () => {
    const lines = [COLUMNS.map((column) => column.key), ...listed().map((edge) => COLUMNS.map((column) => column.value(edge)))];
    const text = lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    h("a", { href: address, download: report.file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });

  function notes() {
    const texts = [];
    if (edges.some((e) => e.direction === "free")) {
      texts.push(`Where the direction is open, cause, effect and coefficient are those of ${report.consensus ?
        "one direction, which too few of the samples have" : "one of the graphs that fit equally well"}.`);
    }
    if (edges.some((e) => known(e.error))) texts.push("Standard errors hold if this graph is the true one.");
    if (edges.some((e) => known(e.p))) {
      texts.push(report.tested ? "p-values are of the edge, not of its direction." :
        "p-values are those of the coefficients in this graph. The same rows have chosen the edges, so they are too small.");
    }
    if (report.coefficient === "slope") texts.push("Slopes are those of straight lines through relations that are not straight.");
    if (edges.some((e) => known(e.standardised))) texts.push("Standardised coefficients are in standard deviations of both columns.");
    if (report.sampled) texts.push("Found in: share of the samples of the rows with an edge between the two, whichever way.");
    $("notes").replaceChildren(h("p", {}, texts.join(" ")));
  }

  // --- all that depends on filters and on what is chosen -------------------------------------------------------------

  function update() {
    let count = 0;
    for (const edge of edges) {
      const on = drawn(edge);
      count += on;
      edge.group.style.display = on ? "" : "none";
    }
    const set = mark();
    $("details").replaceChildren(...(chosen === null ? overview() : isNode(chosen) ? nodeDetails(chosen, set) : edgeDetails(chosen)));
    if (chosen !== null) $("details").append(h("p", {}, button("Let go", () => choose(null))));
    $("strength-value").textContent = shown(filters.strength, 2);
    $("confidence-value").textContent = percent(filters.share);
    $("count").textContent = count === edges.length ? `${count > 1 ? "All " : ""}${plural(edges.length, "edge")} shown.` : `${count.toLocaleString("en")} of ${plural(edges.length, "edge")} shown.`;
    table();
  }

  // --- charts ------------------------------------------------------------------------------------------------------

  function ticks(low, high, count = 4) {
    const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10), values = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) values.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return values;
  }

  /** Curves over the steps of the search; `series` are [class, name, values], `whole` says that they are counts. */
  function curves(heading, series, whole = false) {
    const steps = report.history.step, [W, H, left, bottom, top] = [560, 250, 64, 30, 8];
    const values = series.flatMap(([, , v]) => v.filter(known));
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (high - low < 1e-12 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
    const last = Math.max(steps[steps.length - 1], steps[0] + 1);
    const x = (v) => left + (W - left - 12) * (v - steps[0]) / (last - steps[0]);
    const y = (v) => top + (H - top - bottom) * (high - v) / (high - low);
    const digits = Math.min(9, Math.max(3, Math.ceil(Math.log10(Math.max(Math.abs(high), Math.abs(low)) / (high - low) || 1)) + 2));
    const chart = s("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img",
      "aria-label": `${heading}, from ${shown(series[0][2].find(known), digits)} to ${shown(series[0][2].filter(known).at(-1), digits)} in ${plural(steps.at(-1), "step")}` });
    for (const v of ticks(low, high).filter((tick) => !whole || Number.isInteger(tick))) {
      chart.append(s("line", { class: "grid", x1: left, x2: W - 12, y1: y(v), y2: y(v) }), s("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, shown(v, digits)));
    }
    for (const v of ticks(steps[0], last, 5).filter(Number.isInteger)) chart.append(s("text", { x: x(v), y: H - 8, "text-anchor": "middle" }, v.toLocaleString("en")));
    for (const [kind, , line] of series) {
      const points = line.map((v, k) => [v, k]).filter(([v]) => known(v)).map(([v, k]) => `${x(steps[k]).toFixed(1)},${y(v).toFixed(1)}`);
      chart.append(s("polyline", { class: kind, points: points.length > 1 ? points.join(" ") : `${points[0]} ${points[0]}` }));
    }
    const keys = series.length > 1 ? series.flatMap(([kind, name]) => [" ", h("small", {}, h("span", { class: `key ${kind}` }), name)]) : [];
    return h("figure", {}, h("figcaption", {}, heading, h("br"), h("small", {}, "by step of the search"), ...keys), chart);
  }

  function histogram(column) {
    const highest = Math.max(1, ...column.counts), count = column.counts.length, height = 56;
    const bars = column.counts.map((n, k) => (n ? s("rect", { x: (k * 180) / count, width: 180 / count - 0.8,
      y: height - Math.max(1, (n / highest) * height), height: Math.max(1, (n / highest) * height) }) : null));
    return h("div", { class: "columns-bars columns" }, s("svg", { viewBox: `0 0 180 ${height}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `Distribution from ${shown(column.low)} to ${shown(column.high)}` }, ...bars));
  }

  function distributions(all) {
    const taken = report.columns.slice(0, all ? undefined : 24);
    $("columns").replaceChildren(...taken.map((column, k) => h("figure", {}, histogram(column).firstChild,
      h("figcaption", {}, nodes[k].text, h("small", {}, `${shown(column.low)} to ${shown(column.high)}, mean ${shown(column.mean)}`)))));
    $("more-columns").hidden = taken.length === report.columns.length;
  }
  $("more-columns").addEventListener("click", () => distributions(true));

  const correlation = (i, j) => (i === j ? 1 : i > j ? report.correlations[i][j] : report.correlations[j][i]);
  /** Two digits, or as many as tell it from 1. */
  function tellable(r) {
    let digits = 2;
    while (known(r) && Math.abs(r) < 1 && digits < 9 && Math.abs(Number(r.toPrecision(digits))) === 1) digits += 1;
    return shown(r, digits);
  }
  const pair = (i, j) => [alone(nodes[i]), " and ", alone(nodes[j]), `: ${tellable(correlation(i, j))}`];
  let paint = () => {};

  function correlations() {
    const d = nodes.length, joined = new Set(edges.flatMap((e) => [e.s * d + e.t, e.t * d + e.s])), pairs = [];
    report.correlations.forEach((line, i) => line.forEach((r, j) => known(r) && pairs.push([r, i, j])));
    const top = pairs.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 10);
    const canvas = h("canvas", { width: d, height: d, tabindex: "0", role: "img",
      "aria-label": `Heat map of the correlations of ${plural(d, "column")}; arrow keys read it cell by cell` });
    const readout = h("output", { class: "quiet" }, "Point at a cell to read it.");
    const cursor = [0, 0];
    const read = (i, j) => {
      [cursor[0], cursor[1]] = [i, j];
      readout.replaceChildren(...pair(i, j));
    };
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect(), index = (v, length) => Math.min(d - 1, Math.max(0, Math.floor((v / length) * d)));
      read(index(event.clientY - box.top, box.height), index(event.clientX - box.left, box.width));
    });
    canvas.addEventListener("keydown", (event) => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      const [dx, dy] = ARROWS[event.key], within = (v) => Math.min(d - 1, Math.max(0, v));
      read(within(cursor[0] + dy), within(cursor[1] + dx));
    });
    const colours = ["positive", "negative", "blank"].map((kind) => h("span", { class: kind, hidden: true }));
    const names = d <= 30 ? h("ul", { "aria-hidden": "true" }, ...nodes.map((node) => h("li", {}, node.label))) : null;
    // rows of the map are about as high as this share of the width: names do not run into each other
    if (names) names.style.fontSize = `min(.8125rem, ${70 / d}cqw)`;
    const list = top.map(([, i, j]) => h("li", {}, ...pair(i, j), joined.has(i * d + j) ? "" : " (no edge)"));
    $("correlations").append(h("div", { class: "matrix" }, h("div", {}, h("div", { class: names && "heat" }, names, canvas), h("p", {}, readout)),
      h("div", {}, h("h4", {}, "The strongest"), h("ol", {}, ...list))), ...colours);
    paint = () => {
      const rgb = (element, property) => getComputedStyle(element)[property].match(/[\d.]+/g).map(Number);
      const [plus, less, none] = [rgb(colours[0], "color"), rgb(colours[1], "color"), rgb(document.querySelector(".stage"), "backgroundColor")];
      const image = new ImageData(d, d);
      for (let i = 0; i < d; i += 1) {
        for (let j = 0; j < d; j += 1) {
          const r = correlation(i, j) || 0, to = r < 0 ? less : plus;
          for (let c = 0; c < 3; c += 1) image.data[4 * (i * d + j) + c] = none[c] + (to[c] - none[c]) * Math.abs(r);
          image.data[4 * (i * d + j) + 3] = 255;
        }
      }
      canvas.getContext("2d").putImageData(image, 0, 0);
    };
    paint();
  }

  // --- light and dark ----------------------------------------------------------------------------------------------

  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  function themed() {
    $("theme").textContent = dark() ? "Light" : "Dark";
    paint();
  }
  $("theme").hidden = false;
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    themed();
  });
  system.addEventListener("change", themed);

  // --- begin -------------------------------------------------------------------------------------------------------

  fit();
  legend();
  notes();
  update();
  if (report.history) {
    const { best_score: best, mean_reward: mean, edges: counts, sigma } = report.history;
    const score = [["second", "mean of the step", mean], ["series", "best so far", best]].filter(([, , v]) => v && v.some(known));
    if (score.length) $("curves").append(curves("Score", score));
    if (counts && counts.some(known)) $("curves").append(curves("Edges", [["series", "edges", counts]], true));
    if (sigma && sigma.some(known)) $("curves").append(curves("Spread of the policy", [["series", "spread", sigma]]));
  } else {
    $("curves").append(h("p", { class: "quiet" }, "There is no record of the search here."));
  }
  if (report.columns) distributions(false);
  else $("columns").replaceWith(h("p", { class: "quiet" }, "The rows of the table are not in this page; the end of the page says how to get them in."));
  if (report.correlations) correlations();
  else $("correlations").append(h("p", { class: "quiet" }, report.columns ? "Left out: there are too many columns." : "Not in this page."));
  themed();
  document.documentElement.dataset.ready = "true";
})();
