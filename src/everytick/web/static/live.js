// Pages that follow what happens. The stream names lanes. On the page Now each is fetched and swapped, at most once a
// second; the parts of other pages are swapped with what the page says then. Never the one with the pointer or the
// focus. What would move the page waits behind a pill.
import { now } from "./frame.js";

const dot = document.getElementById("live");
const said = document.getElementById("said");
const part = (name) => document.getElementById(`part-${name}`);
const clock = () => document.getElementById("clock")?.textContent.split(" ").at(-1).slice(0, 5) ?? "";
const main = () => document.querySelector("main");
const busy = (node) => node.matches(":hover, :focus-within");

// The job that the page is about, if it is about one.
const lane = dot?.dataset.lane;

let source = null;
let isOpen = false;
let isAway = false;
let isChanged = false;
let refreshedAt = Date.now();
const due = new Map();
const asked = new Map();

const state = () => {
  const isOn = isOpen && !isAway;
  if (isOn === dot.classList.contains("on")) return;
  dot.textContent = isOn ? "live" : `not live since ${clock()}`;
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

// What the last deed told, with its Undo, stays until the reader goes on.
const whole = (page, isNowAway) => {
  const fresh = page.querySelector("main");
  if (!fresh) return location.reload();
  isAway = isNowAway;
  state();
  due.clear();
  document.title = page.title;
  if (!isAway) fresh.prepend(...main().querySelectorAll(":scope > .banner[role=status]"));
  main().replaceWith(fresh);
};

// An outage: the page Now says what was known; of other pages what is seen stays, without its deeds.
const away = (page) => {
  if (page.getElementById("known")) return whole(page, true);
  isAway = true;
  state();
  const said = Object.assign(document.createElement("div"), { className: "banner wrong", role: "alert" });
  said.textContent = page.querySelector("h1").textContent;
  main().querySelectorAll("a[href*='/do/'], form:not([role=search]) button").forEach((deed) => deed.remove());
  main().prepend(said);
};

const PARTS = "main :is(.head > :first-child, .banner:not([role=status]), .tiles, .filters, section[aria-labelledby]:not(:has([data-follow]))), main > .panel";
const key = (node) => node.getAttribute("aria-labelledby") ?? node.className;
const rows = (node) => [...node.querySelectorAll("tbody tr")].map((row) => (row.querySelector(".nw a") ?? row.querySelector("a"))?.href).join();
// What was typed or chosen, and not sent, is not taken away.
const typed = (node) => [...node.querySelectorAll("input")].some((field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked);
const update = (page) => {
  const own = [...document.querySelectorAll(PARTS)], theirs = [...page.querySelectorAll(PARTS)];
  const isStill = scrollY < 1 && !main().matches(":focus-within") && !typed(main());
  if (own.map(key).join() !== theirs.map(key).join()) return isStill ? whole(page, false) : pill("Show what is new");
  document.title = page.title;
  own.forEach((old, place) => {
    const fresh = theirs[place];
    if (old.outerHTML === fresh.outerHTML || busy(old) || typed(old) || old.querySelector("details[open]")) return;
    if (old.matches("main > .panel") && rows(old) !== rows(fresh)) pill("Show what is new");
    else old.replaceWith(fresh);
  });
};

const refresh = async () => {
  refreshedAt = Date.now();
  isChanged = false;
  const here = new URL(location.href), shown = document.querySelector(".tl")?.dataset.w;
  if (shown) here.searchParams.set("w", shown);
  const answer = await fetch(here, { headers: { accept: "text/html" } });
  if (!answer.ok && answer.status !== 503) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // The store has gone or come back: what is known then stands on the whole page, with or without the deeds.
  if (!answer.ok) return isAway || away(page);
  if (isAway) return whole(page, false);
  if (!document.querySelector(".tl")) return update(page);
  if (Boolean(page.querySelector(".tl .lanes > li[data-lane]")) !== Boolean(lanes().length)) return location.reload();
  document.title = page.title;
  into("head", page);
  into("tiles", page);
  const before = Number(part("looks")?.dataset.count ?? 0), after = Number(page.getElementById("part-looks")?.dataset.count ?? 0);
  if (part("looks") && page.getElementById("part-looks") && before === after) into("looks", page);
  else if (after > before) pill(`${after - before} new`);
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

const pill = (text) => {
  let button = document.querySelector("button.pill");
  if (!button) {
    button = Object.assign(document.createElement("button"), { className: "btn go pill", type: "button" });
    button.addEventListener("click", () => { scrollTo(0, 0); location.reload(); });
    document.body.append(button);
  }
  button.textContent = text;
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
    isOpen = true;
    state();
  });
  source.addEventListener("lane", (event) => {
    const told = JSON.parse(event.data);
    isChanged ||= !lane || told.lane === lane;
    if (named(told.lane)) due.set(told.lane, told.rev);
    if (told.said) said.textContent = told.said;
  });
  source.addEventListener("fleet", () => { isChanged = true; });
  source.addEventListener("store", () => refresh().catch(() => {}));
  source.addEventListener("gap", () => {
    isChanged = true;
    for (const lane of lanes()) due.set(lane.dataset.lane, 0);
  });
  source.addEventListener("end", again);
  // A browser asks again by itself, unless it was refused.
  source.addEventListener("error", () => (source?.readyState === EventSource.CLOSED ? again() : lost()));
};
const lost = () => { isOpen = false; state(); };
const close = () => { source?.close(); source = null; };
const again = () => { close(); lost(); setTimeout(open, 5000); };

if (dot) {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); due.clear(); lost(); } else { open(); refresh().catch(() => {}); }
  });
  addEventListener("pagehide", close);
  setInterval(work, 250);
  setInterval(move, 10000);
  // Before the first job the page asks often: it fills by itself.
  const isEmpty = document.querySelector(".tl:not([data-after])");
  const [soon, late] = isEmpty ? [1000, 5000] : [lane ? 2000 : 10000, 60000];
  document.addEventListener("over", () => refresh().catch(() => {}));
  setInterval(() => {
    const age = Date.now() - refreshedAt;
    if (!document.hidden && age > (isAway ? 5000 : isChanged ? soon : late)) refresh().catch(() => {});
  }, 1000);
  open();
}
