// Lanes that follow what happens. The stream names lanes; each is fetched and swapped, at most once a second, never
// the one with the pointer or the focus. What would move the page waits behind a pill.
import { now } from "./frame.js";

const dot = document.getElementById("live");
const said = document.getElementById("said");
const part = (name) => document.getElementById(`part-${name}`);
const clock = () => document.getElementById("clock")?.textContent.split(" ").at(-1).slice(0, 5) ?? "";
const busy = (node) => node.matches(":hover, :focus-within");

let source = null;
let isChanged = false;
let refreshedAt = Date.now();
const due = new Map();
const asked = new Map();

const state = (text, isOn) => {
  dot.textContent = text;
  dot.classList.toggle("on", isOn);
};

// ---------------------------------------------------------------------------------------------------- one lane
const lanes = () => document.querySelectorAll(".lanes > li[data-lane]:not(.group)");
const named = (name) => [...lanes()].find((lane) => lane.dataset.lane === name);

const swap = async (name) => {
  const figure = document.querySelector(".tl");
  const { lanes: base, after, through } = figure.dataset;
  asked.set(name, Date.now());
  const answer = await fetch(`${base}${encodeURIComponent(name)}?after=${after}&through=${through}`);
  if (!answer.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const fresh = holder.content.firstElementChild;
  const old = named(name);
  if (!old || busy(old)) due.set(name, Number(fresh.dataset.rev));
  else if (Number(fresh.dataset.rev) >= Number(old.dataset.rev)) old.replaceWith(fresh);
};

const work = () => {
  for (const [name] of due) {
    const lane = named(name);
    if (!lane) due.delete(name);
    else if (!busy(lane) && Date.now() - (asked.get(name) ?? 0) >= 1000) {
      due.delete(name);
      swap(name).catch(() => due.set(name, 0));
    }
  }
};

// --------------------------------------------------------------------------------------------------- the whole page
const into = (name, page) => {
  const old = part(name), fresh = page.getElementById(`part-${name}`);
  if (old && fresh && !busy(old)) old.replaceWith(fresh);
  return Boolean(old) === Boolean(fresh) && (!old || old.dataset.count === fresh.dataset.count);
};

const refresh = async () => {
  refreshedAt = Date.now();
  isChanged = false;
  const here = new URL(location.href), shown = document.querySelector(".tl")?.dataset.w;
  if (shown) here.searchParams.set("w", shown);
  const answer = await fetch(here, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (Boolean(page.querySelector(".tl .lanes > li[data-lane]")) !== Boolean(lanes().length)) return location.reload();
  document.title = page.title;
  into("head", page);
  into("tiles", page);
  const before = Number(part("looks")?.dataset.count ?? 0), after = Number(page.getElementById("part-looks")?.dataset.count ?? 0);
  if (part("looks") && page.getElementById("part-looks") && before === after) into("looks", page);
  else if (after > before) pill(after - before);
  else if (before && !busy(part("looks"))) part("looks").dataset.count = after;
  rebase(page);
};

const rebase = (page) => {
  const old = document.querySelector(".tl"), fresh = page.querySelector(".tl");
  if (!old || !fresh || busy(old)) return;
  const names = (of) => [...of.querySelectorAll(".lanes > li")].map((lane) => lane.dataset.lane).sort().join("\n");
  const order = [...old.querySelectorAll(".lanes > li[data-lane]")].map((lane) => lane.dataset.lane);
  if (names(old) === names(fresh)) {
    const list = fresh.querySelector(".lanes");
    const byName = new Map([...list.children].map((lane) => [lane.dataset.lane, lane]));
    for (const name of order.filter((each) => !byName.get(each).matches(".group")).reverse()) list.prepend(byName.get(name));
  }
  old.replaceWith(fresh);
};

const pill = (count) => {
  let button = document.querySelector("button.pill");
  if (!button) {
    button = Object.assign(document.createElement("button"), { className: "btn go pill", type: "button" });
    button.addEventListener("click", () => { scrollTo(0, 0); location.reload(); });
    document.body.append(button);
  }
  button.textContent = `${count} new`;
};

// ------------------------------------------------------------------------------------------------------- now moves
const move = () => {
  const figure = document.querySelector(".tl");
  if (!figure?.dataset.after) return;
  const after = Number(figure.dataset.after), length = Number(figure.dataset.through) - after;
  const at = (now() / 1000 - after) / length;
  if (at < 0 || at > 1) return;
  for (const line of figure.querySelectorAll(".over .nowline")) {
    line.setAttribute("x1", `${at * 100}%`);
    line.setAttribute("x2", `${at * 100}%`);
  }
  const chip = figure.querySelector(".axis svg.now");
  chip?.setAttribute("x", `${at * 100}%`);
  if (chip) chip.querySelector("text").textContent = `now ${clock()}`;
};

// ------------------------------------------------------------------------------------------------------ the stream
const open = () => {
  if (source || document.hidden) return;
  source = new EventSource(dot.dataset.stream);
  source.addEventListener("hello", () => {
    if (!dot.classList.contains("on") && Date.now() - refreshedAt > 5000) refresh().catch(() => {});
    state("live", true);
  });
  source.addEventListener("lane", (event) => {
    const told = JSON.parse(event.data);
    isChanged = true;
    if (named(told.lane)) due.set(told.lane, told.rev);
    if (told.said) said.textContent = told.said;
  });
  source.addEventListener("fleet", () => { isChanged = true; });
  source.addEventListener("gap", () => {
    isChanged = true;
    for (const lane of lanes()) due.set(lane.dataset.lane, 0);
  });
  source.addEventListener("end", () => { close(); lost(); setTimeout(open, 5000); });
  source.addEventListener("error", lost);
};
const lost = () => { if (dot.classList.contains("on")) state(`not live since ${clock()}`, false); };
const close = () => { source?.close(); source = null; };

if (dot) {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); due.clear(); dot.classList.remove("on"); } else { open(); refresh().catch(() => {}); }
  });
  addEventListener("pagehide", close);
  setInterval(work, 250);
  setInterval(move, 10000);
  // Before the first job the page asks often: it fills by itself.
  const [soon, late] = document.querySelector(".tl[data-after]") ? [10000, 60000] : [1000, 5000];
  setInterval(() => {
    const age = Date.now() - refreshedAt;
    if (!document.hidden && age > (isChanged ? soon : late)) refresh().catch(() => {});
  }, 1000);
  open();
}
