// Runs in the page that is judged: returns a sentence for each fault.
() => {
  const faults = [];
  const where = (e) => {
    const name = e.id ? `#${e.id}` : e.getAttribute("class") ? `.${e.getAttribute("class").split(" ")[0]}` : "";
    return `<${e.localName}${name}> “${(e.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40)}”`;
  };
  const all = (css) => [...document.querySelectorAll(css)];
  const isShown = (e) => {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && !e.closest("details:not([open]) > :not(summary)");
  };
  const isRead = (e) => !e.closest('[aria-hidden="true"]');
  const textOf = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent || "").join(" ").trim();
  const nameOf = (e) => (
    e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") && textOf(e.getAttribute("aria-labelledby"))) ||
    [...(e.labels || [])].map((l) => l.textContent).join(" ").trim() || (e.textContent || "").trim() ||
    e.getAttribute("title") || e.getAttribute("alt") || e.querySelector("svg[aria-label], img[alt], title")?.textContent || ""
  ).trim();

  // The document.
  if (!document.documentElement.lang) faults.push("the page has no lang");
  if (!document.title.trim()) faults.push("the page has no title");
  if (all("main").length !== 1) faults.push(`the page has ${all("main").length} main elements`);
  if (all("h1").length !== 1) faults.push(`the page has ${all("h1").length} h1`);
  if (!document.querySelector('a.skip[href^="#"]')) faults.push("the page has no skip link");

  // Ids are unique, and what refers to them finds them.
  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => faults.push(`the id ${id} is there twice`));
  for (const attribute of ["aria-labelledby", "aria-describedby", "for", "aria-controls"])
    for (const e of all(`[${attribute}]`))
      for (const id of e.getAttribute(attribute).split(/\s+/))
        if (id && !document.getElementById(id)) faults.push(`${where(e)}: ${attribute} names ${id}, which is not there`);

  // Headings go down one step at a time.
  let level = 0;
  for (const h of all("h1, h2, h3, h4, h5, h6").filter(isShown)) {
    const own = Number(h.localName[1]);
    if (own > level + 1) faults.push(`${where(h)} follows a heading of level ${level}`);
    level = own;
  }

  // Everything that can be used has a name; nothing has an inline style or handler.
  for (const e of all("a[href], button, input:not([type=hidden]), select, textarea, summary"))
    if (isRead(e) && isShown(e) && !nameOf(e)) faults.push(`${where(e)} has no name`);
  for (const e of all('svg[role="img"], img')) if (isRead(e) && !nameOf(e)) faults.push(`${where(e)} has no name`);
  for (const e of all("svg:not([role])"))
    if (isShown(e) && isRead(e) && !e.closest("a, button, [role=img]")) faults.push(`${where(e)} is neither hidden nor named`);
  for (const e of all("[style], [onclick], [onload], [onerror]")) faults.push(`${where(e)} has an inline style or handler`);
  for (const e of all("time")) if (!e.getAttribute("datetime")) faults.push(`${where(e)} has no datetime`);

  // Tables are named and have heads.
  for (const t of all("table")) {
    if (!t.caption && !t.getAttribute("aria-label") && !t.getAttribute("aria-labelledby")) faults.push(`${where(t)}: a table without a caption`);
    if (!t.querySelector("th")) faults.push(`${where(t)}: a table without heads`);
    for (const th of t.querySelectorAll("th")) if (!th.getAttribute("scope")) faults.push(`${where(th)}: a head without scope`);
  }

  // Targets are at least 24 px high and wide, 32 px where fingers point. WCAG 2.5.8 exempts links in a sentence, whose
  // height is that of its lines, and targets that stand elsewhere too: marks in pictures, which are in the table. The
  // label of a field belongs to its target.
  const least = matchMedia("(pointer: coarse)").matches ? 32 : 24;
  const blockOf = (e) => { do e = e.parentElement; while (getComputedStyle(e).display === "inline"); return e; };
  const isInSentence = (e) => {
    if (e.localName !== "a" || getComputedStyle(e).display !== "inline") return false;
    const block = blockOf(e), texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode, by = text.parentElement;
      if (/\p{L}{2}/u.test(text.data) && !by.closest("a, button") && isShown(by) && (by === block || blockOf(text) === block)) return true;
    }
    return false;
  };
  for (const e of all("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
    if (!isShown(e) || e.matches("svg a[tabindex='-1'], .skip:not(:focus), .sr") || isInSentence(e)) continue;
    const boxes = [e, ...(/^(checkbox|radio)$/.test(e.type) ? e.labels : [])].map((each) => each.getBoundingClientRect());
    const side = (end, begin) => Math.max(...boxes.map((box) => box[end])) - Math.min(...boxes.map((box) => box[begin]));
    const width = side("right", "left"), height = side("bottom", "top");
    if (Math.min(width, height) < least - 0.5) faults.push(`${where(e)} is only ${Math.round(width)}×${Math.round(height)} px`);
  }

  // The page does not scroll sideways.
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${document.documentElement.clientWidth} px`);

  // Text stands out from its ground: 4.5:1, large text 3:1.
  const parse = (c) => { const m = c.match(/[\d.]+/g)?.map(Number) || [0, 0, 0, 0]; return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => [r, g, b].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; if (c[3] > 0) return null; } return [255, 255, 255, 1]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || judged.has(e) || e.closest("svg, script, style, noscript, .sr") || !isShown(e)) continue;
    judged.add(e);
    const style = getComputedStyle(e), behind = ground(e), ink = parse(style.color);
    if (!behind || ink[3] < 1) continue;
    const [a, b] = [light(ink), light(behind)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 600);
    if (ratio < (isLarge ? 3 : 4.5)) faults.push(`${where(e)} has a contrast of ${ratio.toFixed(1)}`);
  }
  return faults;
}
