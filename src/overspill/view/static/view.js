// Small things that HTML cannot do. Nothing here builds HTML from stored text: the server escapes it, and htmx puts it in place.
"use strict";
(() => {
  const MAX_WINDOWS = 12; // of an output that are in the page at the same time
  const say = (text) => {
    const place = document.getElementById("said");
    place.textContent = text;
    setTimeout(() => { if (place.textContent === text) place.textContent = ""; }, 4000);
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Copy buttons.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      say("Copied.");
    } catch {
      say("The browser does not allow copying here. Select the text and copy it.");
    }
  });

  // Plots.
  const draw = async (place) => {
    const answer = await fetch(place.dataset.plot);
    if (!answer.ok) return;
    const data = await answer.json();
    place.replaceChildren();
    if (!data.steps.length) { place.textContent = "Nothing to plot yet."; return; }
    const around = "days" in place.dataset ? 7200 : 1; // on both sides of a single point
    // What happened in each hour or day is a bar; what adds up is a line.
    const bars = "days" in place.dataset ? uPlot.paths.bars({ size: [0.6, 40] }) : undefined;
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line") }, ticks: { stroke: color("--line") } };
    const line = (label, name) => ({ label, stroke: color(name), width: 2, fill: bars && color(name) + "55", paths: bars, points: { show: !bars && data.steps.length < 60 } });
    new uPlot({
      width: Math.max(280, place.clientWidth), height: 240,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"), // as the table counts days
      scales: { x: { time: "days" in place.dataset, range: (_, first, last) => data.steps.length > 1 ? (bars ? [first - around, last + around] : [first, last]) : [first - around, first + around] } },
      series: [{ label: "days" in place.dataset ? "Time (UTC)" : "Step" }, line("Entered", "--bad"), line("Kept out", "--bar")],
      axes: [axis, { ...axis, size: 80 }],
    }, [data.steps, data.entered, data.keptOut], place);
  };
  const drawAll = () => document.querySelectorAll("[data-plot]").forEach(draw);

  // An output: wrapping, places in the fragment, keys, and no more windows than a browser bears.
  const content = document.getElementById("content");
  const wrap = document.getElementById("wrap");
  const toggleWrap = () => {
    const on = content.classList.toggle("wrapped");
    wrap.setAttribute("aria-pressed", String(on));
  };
  if (wrap) wrap.addEventListener("click", toggleWrap);
  const place = () => /^#(?:L(\d{1,16}(?:-\d{1,16})?)|bytes=(\d{1,16}(?:-\d{1,16})?))$/.exec(location.hash);
  const show = (query) => {
    if (content) htmx.ajax("GET", `${content.dataset.output}/window?${query}`, { target: "#content", swap: "innerHTML" });
  };
  const follow = () => {
    const found = place();
    if (!found || !content) return;
    show(found[1] ? `lines=${found[1]}` : `bytes=${found[2]}`);
  };
  window.addEventListener("hashchange", follow);
  document.body.addEventListener("htmx:afterSettle", (event) => {
    if (!content || !content.contains(event.target)) return;
    const all = content.querySelectorAll(".window");
    if (all.length > MAX_WINDOWS) {
      const added = event.detail.elt;
      const extra = all[0] === added || all[0].contains(added) ? all[all.length - 1] : all[0];
      const height = content.scrollHeight;
      const isAbove = extra === all[0];
      extra.remove();
      if (isAbove) content.scrollTop -= height - content.scrollHeight;
    }
    const marked = content.querySelector(".marked");
    if (event.target === content && marked) marked.scrollIntoView({ block: "center" });
  });
  document.addEventListener("keydown", (event) => {
    if (!content || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "w") toggleWrap();
    else if (event.key === "r") document.querySelector("[accesskey=r]").click();
    else if (event.key === "G" || (event.key === "End" && event.shiftKey)) document.getElementById("last").click();
    else return;
    event.preventDefault();
  });

  // What happens meanwhile.
  const live = document.querySelector("[data-live]");
  if (live) {
    const events = new EventSource(live.dataset.live);
    events.addEventListener("changed", () => {
      const query = location.search;
      const address = live.dataset.refresh.includes("?") ? live.dataset.refresh : live.dataset.refresh + query;
      htmx.ajax("GET", address, { target: "#" + live.id, swap: "innerHTML" }).then(drawAll);
    });
    window.addEventListener("pagehide", () => events.close());
  }

  // What was opened before htmx listened. Its listener for this event came first.
  document.addEventListener("DOMContentLoaded", () => {
    for (const opened of document.querySelectorAll("details[open][hx-trigger^=toggle]")) opened.dispatchEvent(new Event("toggle"));
  });

  drawAll();
  follow();
  if (content && !place()) {
    const marked = content.querySelector(".marked");
    if (marked) marked.scrollIntoView({ block: "center" });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
