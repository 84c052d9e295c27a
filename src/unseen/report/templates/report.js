// What the page does once it is there. Names come from users: they are only ever set as text, never as markup.
(() => {
  "use strict";
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const find = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // -- paper: light or dark -------------------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = () => root.dataset.paper || (dark.matches ? "dark" : "light");
  const themeButton = find("theme");
  const nameTheme = () => { themeButton.textContent = paper() === "dark" ? "Light mode" : "Dark mode"; };
  themeButton.addEventListener("click", () => {
    root.dataset.paper = paper() === "dark" ? "light" : "dark";
    try { localStorage.setItem("unseen-paper", root.dataset.paper); } catch { /* it holds for this visit */ }
    nameTheme();
    redraw(paper());
  });
  dark.addEventListener("change", () => { nameTheme(); redraw(paper()); });
  nameTheme();
  themeButton.hidden = false;

  // -- figures: drawn when they come near the screen -------------------------------------------------------------------

  const tip = make("div", undefined, "tip");
  tip.hidden = true;
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  const showTip = (handler, event, item, value) => {
    if (value === null || value === undefined || value === "") { tip.hidden = true; return; }
    const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
    const table = make("table");
    for (const [key, said] of rows) {
      const row = table.insertRow();
      row.append(make("th", key), make("td", typeof said === "object" ? JSON.stringify(said) : String(said)));
    }
    tip.replaceChildren(table);
    tip.hidden = false;
    const wide = tip.offsetWidth, high = tip.offsetHeight, gap = 14;
    const left = event.clientX + gap + wide > innerWidth ? event.clientX - gap - wide : event.clientX + gap;
    const top = event.clientY + gap + high > innerHeight ? event.clientY - gap - high : event.clientY + gap;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  const charts = all(".chart");
  const drawn = new Map();  // element → {paper, view}
  const draw = async (element, wanted) => {
    const before = drawn.get(element);
    if (before && before.paper === wanted) return;
    drawn.set(element, { paper: wanted, view: before && before.view });
    const spec = JSON.parse(find(`spec-${element.dataset.figure}`).textContent);
    const target = make("div");
    try {
      const made = await vegaEmbed(target, spec, {
        actions: false, ast: true, renderer: "svg", config: data.configs[wanted], tooltip: showTip,
        defaultStyle: false, mode: "vega-lite",
      });
      if (drawn.get(element).paper !== wanted) { made.finalize(); return; }
      if (before && before.view) before.view.finalize();
      drawn.set(element, { paper: wanted, view: made });
      element.replaceChildren(target);
      element.dataset.drawn = wanted;
      element.toggleAttribute("data-wide", element.scrollWidth > element.clientWidth + 1);
    } catch (error) {
      drawn.delete(element);
      element.replaceChildren(make("p", `This figure can't be drawn here: ${error.message}`, "note"));
      console.error(error);
    }
  };
  function redraw(wanted) {
    for (const element of [...drawn.keys()]) draw(element, wanted);
  }
  if (charts.length) {
    const watch = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) { watch.unobserve(one.target); draw(one.target, paper()); }
    }, { rootMargin: "600px 0px" });
    for (const element of charts) watch.observe(element);
  }

  // -- tabs ------------------------------------------------------------------------------------------------------------

  const tabs = all('[role="tab"]');
  const choose = (tab, focus) => {
    for (const one of tabs) {
      const on = one === tab;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      find(one.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
  };
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => choose(tab, false));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(tabs[(to + tabs.length) % tabs.length], true);
    });
  });
  const reveal = () => {  // a link to a figure opens what it is in
    const aim = location.hash.length > 1 && find(decodeURIComponent(location.hash.slice(1)));
    if (!aim) return;
    const panel = aim.closest('[role="tabpanel"]'), rest = aim.closest("details.rest");
    const hidden = (panel && panel.hidden) || (rest && !rest.open);
    if (panel && panel.hidden) choose(find(panel.getAttribute("aria-labelledby")), false);
    if (rest) rest.open = true;
    if (hidden) aim.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // -- where the reader is ------------------------------------------------------------------------------------------------

  const links = new Map(all(".contents a").map((link) => [link.hash.slice(1), link]));
  const reading = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (!one.isIntersecting) continue;
      for (const [id, link] of links) id === one.target.id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  for (const section of all("main > section")) reading.observe(section);

  // -- tables as CSV -----------------------------------------------------------------------------------------------------

  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const download = (name, columns, rows) => {
    const text = [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n");
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  for (const button of all("button.download")) {
    button.addEventListener("click", () => {
      const found = data.figures[button.dataset.figure];
      download(button.dataset.figure, found.columns, found.rows);
    });
  }
  const PREVIEW = 200;
  const shown = (value) => typeof value === "number" && !Number.isInteger(value)
    ? String(Number(value.toPrecision(5))) : value === null ? "" : String(value);
  for (const details of all("details.data")) {
    details.addEventListener("toggle", () => {
      const place = details.querySelector(".preview");
      if (!details.open || place.childElementCount) return;
      const found = data.figures[details.dataset.figure];
      const table = make("table"), head = table.createTHead().insertRow(), body = table.createTBody();
      for (const name of found.columns) {
        const heading = make("th", name);
        heading.scope = "col";
        head.append(heading);
      }
      for (const row of found.rows.slice(0, PREVIEW)) {
        const line = body.insertRow();
        for (const value of row) line.append(make("td", shown(value), typeof value === "number" ? "number" : ""));
      }
      place.append(table);
      if (found.all > PREVIEW) {
        const rest = found.all > found.rows.length ? `; the download has ${found.rows.length}, the command all` : "";
        place.append(make("p", `The first ${PREVIEW} of ${found.all} rows${rest}.`, "quiet"));
      }
    });
  }

  // -- claims ------------------------------------------------------------------------------------------------------------

  const ledger = find("ledger");
  if (ledger) {
    const claims = all(".claim", ledger), words = all("button.filter");
    const texts = claims.map((one) => one.textContent.toLowerCase());
    const search = find("claim-search"), paperChoice = find("claim-paper");
    const filter = () => {
      const on = new Set(words.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.verdict));
      const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      claims.forEach((one, i) => {
        const fits = on.has(one.dataset.verdict) && (!paperChoice || !paperChoice.value || paperChoice.value === one.dataset.paper)
          && asked.every((word) => texts[i].includes(word));
        one.hidden = !fits;
        count += fits;
      });
      find("claim-count").textContent = `${count} of ${claims.length} claims`;
      find("claim-none").hidden = count > 0;
    };
    // What was not run is one press away, unless there is nothing else.
    if (words.length > 1) for (const one of words) if (one.dataset.verdict === "not run") one.setAttribute("aria-pressed", "false");
    for (const one of words) {
      one.addEventListener("click", () => {
        one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") !== "true"));
        filter();
      });
    }
    search.addEventListener("input", filter);
    if (paperChoice) paperChoice.addEventListener("change", filter);
    filter();
  }

  // -- every run: only the rows in view are in the document ----------------------------------------------------------------

  const grid = find("runs-grid");
  if (grid) {
    const ROW = 34, AHEAD = 12, PRINTED = 200;
    const columns = data.table.columns, total = data.table.rows;
    const body = grid.querySelector("tbody"), head = grid.querySelector("thead").insertRow();
    const search = find("runs-search"), selection = find("runs-selection");
    const table = grid.querySelector("table");
    const value = (column, i) => column.kind === "text" ? column.levels[column.codes[i]]
      : column.kind === "score" ? column.values[selection.value][i] : column.values[i];
    const text = (column, i) => {
      const found = value(column, i);
      if (found === null || found === undefined) return "";
      return column.kind === "score" ? found.toFixed(4) : column.kind === "id" ? found.slice(0, 8) : String(found);
    };
    const width = (column) => {
      const longest = column.kind === "text" ? Math.max(0, ...column.levels.map((one) => one.length))
        : column.kind === "score" ? 7 : 8;
      return Math.min(36, Math.max(column.name.length + 5, longest + 4, 8));
    };
    let sorted = null, way = 1, rows = Array.from({ length: total }, (_, i) => i);
    const headings = columns.map((column) => {
      const heading = make("th"), button = make("button", column.name);
      heading.scope = "col";
      button.type = "button";
      heading.append(button);
      if (column.kind !== "text") heading.className = "number";
      button[column.kind === "text" ? "append" : "prepend"](make("span", "", "arrow"));  // away from where it aligns
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => { way = sorted === column ? -way : 1; sorted = column; update(); });
      head.append(heading);
      const col = make("col");
      col.style.width = `${width(column)}ch`;
      grid.querySelector("colgroup").append(col);
      return heading;
    });
    table.style.width = `max(100%, ${columns.reduce((sum, one) => sum + width(one), 0)}ch)`;
    table.setAttribute("aria-rowcount", String(total + 1));
    let texts = null;
    const searched = () => {
      const named = columns.filter((one) => one.kind === "text" || one.kind === "id" || one.name === "seed");
      texts ||= Array.from({ length: total }, (_, i) =>
        named.map((one) => one.name === "seed" ? `seed=${value(one, i)};` : value(one, i)).join(" ").toLowerCase());
      // `seed 1` is not `seed 12`.
      const asked = search.value.toLowerCase().replace(/\bseed[\s=]+(\d+)/g, "seed=$1;").split(/\s+/).filter(Boolean);
      const fits = [];
      for (let i = 0; i < total; i++) if (asked.every((word) => texts[i].includes(word))) fits.push(i);
      return fits;
    };
    const ranks = (column) => {  // text sorts as people sort, numbers by value; what is missing comes last
      const order = column.levels.map((one, i) => [one, i])
        .sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })).map(([, i]) => i);
      const rank = new Array(order.length);
      order.forEach((level, place) => { rank[level] = place; });
      return rank;
    };
    function update() {
      rows = searched();
      if (sorted) {
        const rank = sorted.kind === "text" ? ranks(sorted) : null;
        const key = rank ? (i) => rank[sorted.codes[i]] : (i) => value(sorted, i);
        rows.sort((a, b) => {
          const one = key(a), other = key(b);
          if (one === other) return a - b;
          if (one === null || one === undefined) return 1;
          if (other === null || other === undefined) return -1;
          return (one < other ? -1 : 1) * way;
        });
      }
      headings.forEach((heading, i) => {
        const on = columns[i] === sorted;
        heading.setAttribute("aria-sort", on ? (way > 0 ? "ascending" : "descending") : "none");
        heading.querySelector(".arrow").textContent = on ? (way > 0 ? "↑" : "↓") : "";
      });
      find("runs-count").textContent = `${rows.length} of ${total} runs`;
      grid.scrollTop = 0;
      paint(true);
    }
    let from = -1;
    const space = (high, spanned) => {
      const line = make("tr"), filler = make("td");
      line.setAttribute("aria-hidden", "true");
      line.className = "space";
      filler.colSpan = spanned;
      filler.style.height = `${high}px`;
      line.append(filler);
      return line;
    };
    function paint(force, everything) {
      const visible = Math.ceil((grid.clientHeight || 600) / ROW);
      const first = everything ? 0 : Math.max(0, Math.min(rows.length, Math.floor(grid.scrollTop / ROW)) - AHEAD);
      const start = first - (first % 2);  // stripes stay where they are
      if (!force && Math.abs(start - from) < AHEAD / 2) return;
      from = start;
      const end = Math.min(rows.length, everything || start + visible + 2 * AHEAD);
      const lines = [];
      for (let k = start; k < end; k++) {
        const line = make("tr");
        line.setAttribute("aria-rowindex", String(k + 2));
        for (const column of columns) {
          const said = text(column, rows[k]);
          const shownCell = make("td", said, column.kind === "text" ? "" : column.kind === "id" ? "number mono" : "number");
          if (said.length > 12) shownCell.title = said;
          if (column.name === "status") shownCell.dataset.status = said;
          line.append(shownCell);
        }
        lines.push(line);
      }
      body.replaceChildren(space(start * ROW, columns.length), ...lines,
        space(everything ? 0 : (rows.length - end) * ROW, columns.length));
    }
    function showMore() {  // how many columns lie beyond the right edge
      const edge = grid.getBoundingClientRect().left + grid.clientWidth + 1;
      const beyond = headings.filter((heading) => heading.getBoundingClientRect().right > edge).length;
      find("runs-wide").toggleAttribute("data-more", beyond > 0);
      find("runs-more").hidden = table.offsetWidth <= grid.clientWidth + 1;
      find("runs-more").textContent = beyond
        ? `Scroll sideways for ${beyond} more column${beyond === 1 ? "" : "s"} →` : "← Scroll back for the first columns";
    }
    grid.addEventListener("scroll", () => requestAnimationFrame(() => { paint(false); showMore(); }), { passive: true });
    addEventListener("resize", () => { paint(true); showMore(); });
    let typing;
    search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(update, 60); });
    selection.addEventListener("change", update);
    find("runs-download").addEventListener("click", () => download("runs", columns.map((one) => one.name),
      rows.map((i) => columns.map((one) => value(one, i)))));
    update();
    showMore();
    const printed = find("runs-printed");
    addEventListener("beforeprint", () => {
      printed.textContent = `The first ${PRINTED} of ${rows.length} runs.`;
      printed.hidden = rows.length <= PRINTED;
      paint(true, PRINTED);
    });
    addEventListener("afterprint", () => { printed.hidden = true; paint(true); });
  }

  // -- print: everything open, on light paper ------------------------------------------------------------------------------

  const closed = [];  // what has to be closed again
  addEventListener("beforeprint", () => {
    closed.push(...all("details:not([open]):not(.data):not(.index)"));
    for (const one of closed) one.open = true;
    for (const element of charts) draw(element, "light");
  });
  addEventListener("afterprint", () => {
    for (const one of closed.splice(0)) one.open = false;
    redraw(paper());
  });
})();
