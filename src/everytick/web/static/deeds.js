// A deed opens as a dialog on the page that links to it. The form is sent as without script: the answer is a page.
const open = async (link) => {
  const answer = await fetch(link.href, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return location.assign(link.href);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("deed");
  if (!made) return location.assign(link.href);
  const box = document.createElement("dialog");
  box.className = "deed";
  const title = document.createElement("h2");
  title.id = "deed-title";
  title.textContent = made.querySelector("h1").textContent;
  made.querySelector("h1").replaceWith(title);
  box.setAttribute("aria-labelledby", "deed-title");
  made.querySelector("form")?.setAttribute("action", link.href);
  box.append(document.adoptNode(made));
  box.addEventListener("close", () => { box.remove(); link.focus(); });
  box.addEventListener("click", (event) => {
    if (event.target === box || event.target.closest(".actions a.btn")) { event.preventDefault(); box.close(); }
  });
  document.body.append(box);
  box.showModal();
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("main a[href*='/do/']");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.closest("dialog")) return;
  event.preventDefault();
  open(link).catch(() => location.assign(link.href));
});
