// The page of an occurrence that has not ended: new output once a second; when it is over, the page looks anew.
const state = (text) => {
  const shown = document.getElementById("output-state");
  if (shown) shown.textContent = text;
};
const part = (text, name) => {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
};
const made = ([text, clock, level]) => {
  const line = document.createElement("li");
  if (level === "error") line.className = "bad";
  line.append(part(clock, "t"), part(level, `lv ${level}`), part(text, level));
  return line;
};

let pause = 1000;
const look = async () => {
  // The page may have been swapped meanwhile.
  const log = document.getElementById("log");
  if (!log?.dataset.follow || document.hidden) return setTimeout(look, pause);
  try {
    const answer = await fetch(`${log.dataset.follow}&from=${log.dataset.from}`, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.status);
    const { lines, next, is_over } = await answer.json();
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    log.append(...lines.map(made));
    while (log.children.length > 2000) log.firstChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
    log.dataset.from = next;
    pause = 1000;
    state(is_over ? "ended" : "live");
    if (is_over) {
      delete log.dataset.follow;
      document.dispatchEvent(new Event("over"));
    }
  } catch {
    pause = Math.min(pause * 2, 30000);
    state("not live");
  }
  setTimeout(look, pause);
};
const log = document.getElementById("log");
if (log) log.scrollTop = log.scrollHeight;
setTimeout(look, pause);
