// The page of an occurrence that has not ended: new output once a second, and a word when it is over.
const log = document.getElementById("log");
const state = document.getElementById("output-state");
const part = (text, name) => {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
};
const add = ([text, clock, level]) => {
  const line = document.createElement("li");
  if (level === "error") line.className = "bad";
  line.append(part(clock, "t"), part(level, `lv ${level}`), part(text, level));
  log.append(line);
};
const over = () => {
  if (state) state.textContent = "ended";
  const again = document.createElement("a");
  again.className = "btn pill";
  again.href = location.href;
  again.textContent = "It has ended: load the page again";
  document.querySelector("main").append(again);
};

if (log?.dataset.follow) {
  let from = Number(log.dataset.from);
  let pause = 1000;
  const look = async () => {
    if (document.hidden) return setTimeout(look, pause);
    try {
      const answer = await fetch(`${log.dataset.follow}&from=${from}`, { headers: { accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status);
      const { lines, next, is_over } = await answer.json();
      const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
      lines.forEach(add);
      while (log.children.length > 2000) log.firstChild.remove();
      if (atEnd) log.scrollTop = log.scrollHeight;
      from = next;
      pause = 1000;
      if (state) state.textContent = "live";
      if (is_over) return over();
    } catch {
      pause = Math.min(pause * 2, 30000);
      if (state) state.textContent = "not live";
    }
    setTimeout(look, pause);
  };
  log.scrollTop = log.scrollHeight;
  setTimeout(look, pause);
}
