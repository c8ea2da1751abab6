// Every page: a clock that goes on, and the keyboard. Each key has a visible link; letters can be turned off.
const root = document.body.dataset.root;
const clock = document.getElementById("clock");
export const skew = clock ? Date.parse(clock.dateTime) - Date.now() : 0;
export const now = () => Date.now() + skew;

if (clock) {
  let shape;
  try {
    shape = new Intl.DateTimeFormat("en-GB", { timeZone: clock.dataset.zone, weekday: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  } catch { /* a zone that this browser does not know stands still */ }
  const go = () => {
    if (document.hidden) return;
    const at = new Date(now());
    clock.textContent = shape.format(at).replace(",", "");
    clock.title = at.toISOString().replace("T", " ").slice(0, 19) + " UTC";
  };
  if (shape) setInterval(go, 1000);
}

const letters = () => localStorage.getItem("everytick-keys") !== "off";
for (const choice of document.querySelectorAll("input[name=keys]")) {
  choice.checked = choice.value === (letters() ? "on" : "off");
  choice.addEventListener("change", () => localStorage.setItem("everytick-keys", choice.value));
}

const rows = () => [...document.querySelectorAll("main :is(.lanes > li, .attention > li, tbody tr, .rows > li)")]
  .map((row) => row.querySelector("a[href]")).filter((link) => link && link.offsetParent);
const step = (by) => {
  const all = rows();
  const here = all.findIndex((link) => link.closest("li, tr").contains(document.activeElement));
  all[Math.min(Math.max(here + by, 0), all.length - 1)]?.focus();
};
const follow = (key) => {
  const link = document.querySelector(`main [data-key="${CSS.escape(key)}"], .nav [data-key="${CSS.escape(key)}"]`);
  if (link) link.click();
  return Boolean(link);
};
const help = () => {
  let box = document.getElementById("keys");
  if (!box) {
    box = document.createElement("dialog");
    box.id = "keys";
    box.setAttribute("aria-labelledby", "keys-title");
    const said = [["/", "find"], ["g then n j a h f o l", "Now, Jobs, Agenda, History, Files, Nodes, Lab"], ["j  k", "next and previous row"], ["Enter", "open"], ["t  p", "trigger, pause"], ["[  ]", "window earlier and later"], ["+  -", "zoom"], ["?", "this list"]];
    const title = document.createElement("h2");
    title.id = "keys-title";
    title.textContent = "Keyboard";
    const list = document.createElement("dl");
    list.className = "keys";
    for (const [key, what] of said) {
      const name = document.createElement("dt");
      name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
      list.append(name, Object.assign(document.createElement("dd"), { textContent: what }));
    }
    const form = Object.assign(document.createElement("form"), { method: "dialog", className: "actions" });
    const off = Object.assign(document.createElement("a"), { className: "btn", href: root + "settings", textContent: "Turn letters off" });
    form.append(Object.assign(document.createElement("button"), { textContent: "Close" }), off);
    box.append(title, list, form);
    document.body.append(box);
  }
  box.showModal();
};

let went = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return;
  const at = event.target;
  if (at.closest("input, select, textarea, [contenteditable], dialog")) return;
  if (!letters()) return;
  const key = event.key;
  let done = true;
  if (Date.now() - went < 1500 && follow(key)) went = 0;
  else if (key === "/") document.querySelector("#find, #find-more")?.focus();
  else if (key === "g") went = Date.now();
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === "?") help();
  else if ("tp[]+-".includes(key)) done = follow(key);
  else done = false;
  if (done) event.preventDefault();
});
